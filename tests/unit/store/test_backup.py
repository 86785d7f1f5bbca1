"""What a backup restores is the same store, by `prony backup` and by the ways that the databases have themselves."""

from __future__ import annotations

import io
import shutil
import sqlite3
import stat
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from prony.app.access import open_access
from prony.cli.main import main
from prony.errors import ConflictError, InputError, NotFoundError
from prony.model.access import NewToken, Role
from prony.model.experiment import Experiment
from prony.store import backup
from prony.store.backup import BACKUP_MANIFEST, restore_backup, write_backup
from prony.store.home import Home
from prony.store.schema import downgrade, revision
from prony.store.store import Store
from servers.shared import Shared

from .nouns import experiment, jobs, overview, summarise, write_folder


def _all_of(store: Store) -> tuple[object, ...]:
    records = [one.summary.model_dump_json() for found in store.experiments() for one in store.records(found.id)]
    return revision(store.engine), store.experiments(), records, overview(store)


@pytest.mark.parametrize("database_url", [""])
def test_a_backup_of_sqlite_while_it_is_in_use_is_the_same_store(
    store: Store, kept: Experiment, tmp_path: Path
) -> None:
    copy = Home(tmp_path / "copy").create()
    with closing(sqlite3.connect(store.home.database)) as source, closing(sqlite3.connect(copy.database)) as target:
        source.backup(target)
    before = _all_of(store)
    store.save_experiment(experiment("later"))
    with Store.open(copy) as restored:
        assert _all_of(restored) == before


def test_a_dump_of_postgresql_while_it_is_in_use_is_the_same_store(
    home: Home, postgres: Shared, postgres_url: str, empty_postgres_url: str
) -> None:
    with Store.open(home, url=postgres_url) as store:
        store.save_experiment(experiment())
        dump = postgres.programs.make_folder(postgres.folder) / "prony.dump"
        done = postgres.programs.run("pg_dump", "--format=custom", f"--file={dump}", postgres_url)
        assert done.returncode == 0, done.stderr
        before = _all_of(store)
        store.save_experiment(experiment("later"))
    done = postgres.programs.run("pg_restore", f"--dbname={empty_postgres_url}", str(dump))
    assert done.returncode == 0, done.stderr
    with Store.open(home, url=empty_postgres_url) as restored:
        assert _all_of(restored) == before
        restored.save_experiment(experiment("after"))


def files_of(home: Home) -> dict[str, bytes]:
    return {path.relative_to(home.results).as_posix(): path.read_bytes() for path in home.results.rglob("*.*")}


def test_a_new_home_has_every_experiment_of_a_backup(
    store: Store, kept: Experiment, database_url: str, other_url: str, tmp_path: Path
) -> None:
    (store.home.root / "targets.toml").write_text("[far]\n")
    made = write_backup(store.home, tmp_path / "backup.tar", url=database_url)
    before, files = _all_of(store), files_of(store.home)
    store.delete_experiment(kept.id)
    new = Home(tmp_path / "new")
    assert restore_backup(tmp_path / "backup.tar", new, url=other_url) == made
    with Store.open(new, url=other_url) as restored:
        assert _all_of(restored) == before
        assert files_of(new) == files
        restored.save_experiment(experiment("after"))
    assert (new.root / "targets.toml").read_text() == "[far]\n"
    assert (made.experiments, made.missing) == (1, ())
    assert [path.name for path in new.root.glob(".*")] == []


def test_a_home_with_sqlite_moves_into_postgresql(store: Store, database_url: str, empty_postgres_url: str) -> None:
    with open_access(database_url) as access:
        secret = access.add_token(NewToken(name="ann", role=Role.ADMIN)).secret
    archive, new = store.home.root / "backup.tar", Home(store.home.root / "new")
    write_backup(store.home, archive, url=database_url)
    restore_backup(archive, new, url=empty_postgres_url)
    assert not new.database.exists()
    with open_access(empty_postgres_url) as access:
        assert access.authenticate(secret, "192.0.2.1").role is Role.ADMIN
    with pytest.raises(ConflictError, match="not empty"):
        restore_backup(archive, Home(store.home.root / "another"), url=empty_postgres_url)


@pytest.mark.parametrize("database_url", [""])
def test_an_experiment_that_is_deleted_during_the_backup_is_not_in_it(
    store: Store, kept: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save_experiment(experiment("stays"), jobs("stays"))
    folder = write_folder(store.home.result_folder("stays", "stays-0"), jobs("stays")[0])
    store.record_result(folder, summarise(folder))
    add = backup._add_file

    def add_after_deletion(tar: tarfile.TarFile, name: str, path: Path) -> str:
        if path.exists() and kept.id in name:
            store.delete_experiment(kept.id)
        return add(tar, name, path)

    monkeypatch.setattr(backup, "_add_file", add_after_deletion)
    made = write_backup(store.home, tmp_path / "backup.tar")
    restore_backup(tmp_path / "backup.tar", Home(tmp_path / "new"))
    with Store.open(Home(tmp_path / "new")) as restored:
        assert [one.id for one in restored.experiments()] == ["stays"]
    assert (made.experiments, made.missing) == (1, ())


@pytest.mark.parametrize("database_url", [""])
def test_a_result_folder_that_is_gone_is_named(store: Store, kept: Experiment, tmp_path: Path) -> None:
    gone = store.home.result_folder(kept.id, f"{kept.id}-0")
    shutil.rmtree(gone)
    made = write_backup(store.home, tmp_path / "backup.tar")
    assert made.missing == (gone.relative_to(store.home.results).as_posix(),)


@pytest.mark.parametrize("database_url", [""])
def test_a_backup_of_an_older_schema_is_brought_up_to_date(store: Store, kept: Experiment, tmp_path: Path) -> None:
    newest = revision(store.engine)
    downgrade(store.engine, store.home, "-1")
    write_backup(store.home, tmp_path / "backup.tar")
    assert revision(store.engine) != newest
    restore_backup(tmp_path / "backup.tar", Home(tmp_path / "new"))
    with Store.open(Home(tmp_path / "new")) as restored:
        assert (revision(restored.engine), restored.experiment(kept.id).id) == (newest, kept.id)


@pytest.fixture
def archive(store: Store, kept: Experiment, tmp_path: Path) -> Path:
    assert kept.id
    write_backup(store.home, tmp_path / "backup.tar")
    return tmp_path / "backup.tar"


def rewrite(archive: Path, change: str, content: bytes | None, kind: bytes = tarfile.REGTYPE) -> None:
    """Write the archive anew with one member changed, left out (None), or added."""
    with tarfile.open(archive) as tar:
        members = {one.name: (one, tar.extractfile(one)) for one in tar}
        data = {name: file.read() if file else b"" for name, (_, file) in members.items()}
    data.pop(change, None)
    with tarfile.open(archive, "w") as tar:
        for name, text in (data | ({} if content is None else {change: content})).items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(text), kind if name == change else tarfile.REGTYPE, "/etc"
            tar.addfile(member, io.BytesIO(text))


@pytest.mark.parametrize("database_url", [""])
@pytest.mark.parametrize(
    ("change", "content", "kind", "said"),
    [
        ("prony.db", b"other", tarfile.REGTYPE, "prony.db differs from its checksum"),
        ("results/new", b"more", tarfile.REGTYPE, "results/new differs from its checksum"),
        (BACKUP_MANIFEST, None, tarfile.REGTYPE, "not a whole backup"),
        (BACKUP_MANIFEST, b"{}", tarfile.REGTYPE, "not a whole backup"),
        ("../beside", b"out", tarfile.REGTYPE, "not a whole backup"),
        ("results/link", b"", tarfile.SYMTYPE, "not a plain file"),
    ],
)
def test_a_damaged_backup_restores_nothing(
    archive: Path, change: str, content: bytes | None, kind: bytes, said: str, tmp_path: Path
) -> None:
    rewrite(archive, change, content, kind)
    new = Home(tmp_path / "new")
    with pytest.raises(InputError, match=said):
        restore_backup(archive, new)
    assert not new.database.exists()
    assert list(new.results.iterdir()) == []


@pytest.mark.parametrize("database_url", [""])
def test_what_is_there_is_never_replaced(archive: Path, store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="exists already"):
        write_backup(store.home, archive)
    with pytest.raises(ConflictError, match="not empty"):
        restore_backup(archive, store.home)
    with pytest.raises(NotFoundError, match="no database"):
        write_backup(Home(tmp_path / "nothing"), tmp_path / "other.tar")
    with pytest.raises(NotFoundError, match="no file"):
        restore_backup(tmp_path / "none.tar", Home(tmp_path / "new"))
    (tmp_path / "text").write_text("no tar")
    with pytest.raises(InputError, match="not a whole backup"):
        restore_backup(tmp_path / "text", Home(tmp_path / "new"))


@pytest.mark.parametrize("database_url", [""])
def test_only_its_owner_can_read_a_backup(archive: Path) -> None:
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600


@pytest.mark.parametrize("database_url", [""])
def test_the_commands_back_up_and_restore(
    store: Store, kept: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PRONY_HOME", str(store.home.root))
    assert main(["backup", str(tmp_path / "b.tar")]) == 0
    assert ": 1 experiment, " in capsys.readouterr().out
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "new"))
    assert main(["restore", str(tmp_path / "b.tar")]) == 0
    assert "restored 1 experiment of 2" in capsys.readouterr().out
    assert main(["show", kept.id, "--json"]) == 0
    assert kept.id in capsys.readouterr().out
