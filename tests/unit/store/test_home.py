from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from prony.errors import InputError, StoreError
from prony.store.home import Home, home
from prony.store.store import Store


def test_the_variable_decides_over_everything_else(tmp_path: Path) -> None:
    assert home({"PRONY_HOME": str(tmp_path), "HOME": "/elsewhere"}).root == tmp_path


def test_a_relative_variable_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert home({"PRONY_HOME": "here"}).root == tmp_path / "here"


def test_an_empty_variable_counts_as_none() -> None:
    assert home({"PRONY_HOME": "", "HOME": "/h"}, "linux").root == Path("/h/.local/share/prony")


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {"HOME": "/h"}, "/h/.local/share/prony"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "/data"}, "/data/prony"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "relative"}, "/h/.local/share/prony"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/Prony"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/Prony"),
        ("win32", {"HOME": "/h"}, "/h/AppData/Local/Prony"),
    ],
)
def test_each_system_has_its_usual_place(platform: str, environ: dict[str, str], expected: str) -> None:
    assert home(environ, platform).root == Path(expected)


def test_without_a_home_variable_the_user_database_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    assert home({}, "linux").root == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local/share/prony"


def test_a_user_that_no_database_knows_is_told_to_name_a_home() -> None:
    program = (
        "import os, pwd\n"
        "from prony.errors import StoreError\n"
        "from prony.store.home import home\n"
        "os.setuid(54321); os.environ.pop('HOME', None)\n"
        "try: home({})\n"
        "except StoreError as error: print(error.hint)"
    )
    if os.getuid() != 0:
        pytest.skip("only root can become a user that does not exist")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "PRONY_HOME" in done.stdout


def test_looking_makes_nothing_and_creating_makes_everything(tmp_path: Path) -> None:
    made = Home(tmp_path / "a" / "b")
    assert not made.root.exists()
    made.create().create()
    assert made.results.is_dir()
    assert made.cache.is_dir()
    assert made.engines.is_dir()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match=r"a file is in the way of the folder .*home") as caught:
        Home(tmp_path / "home").create()
    assert "PRONY_HOME" in caught.value.hint


def test_a_file_above_it_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="in the way"):
        Home(tmp_path / "file" / "home").create()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is a folder that even root cannot write to")
def test_a_place_that_takes_no_folder_is_named() -> None:
    with pytest.raises(StoreError, match="cannot make /proc/prony") as caught:
        Home(Path("/proc/prony")).create()
    assert "PRONY_HOME" in caught.value.hint


@pytest.mark.parametrize("text", ["", "..", "../x", "a/b", ".hidden", "a b", "x" * 129, "a\n", "a\\b"])
def test_an_id_that_could_leave_the_home_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot be an id"):
        Home(Path("/h")).result_folder("e", text)


def test_each_attempt_has_a_folder_of_its_own() -> None:
    place = Home(Path("/h"))
    assert place.result_folder("e", "j") == Path("/h/results/e/j")
    assert place.result_folder("e", "j", 2) == Path("/h/results/e/j.2")


def modes(root: Path) -> set[int]:
    """Return what the files and folders of a home grant to others than their owner."""
    return {path.stat().st_mode & 0o077 for path in (root, *root.rglob("*"))}


def test_a_home_and_its_database_are_for_nobody_else(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Store.open(Home(tmp_path / "new").create()):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "new").glob("prony.db*"):
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_home_that_others_could_look_into_is_closed_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "old"
    (root / "agents" / "1").mkdir(parents=True)
    (root / "results").mkdir()
    tool, secret = root / "agents" / "tool", root / "prony.db"
    for path, mode in ((tool, 0o755), (secret, 0o644)):
        path.write_text("x")
        path.chmod(mode)
    (root / "link").symlink_to("/etc/hostname")
    root.chmod(0o755)
    Home(root).create()
    assert modes(root / "agents") == {0}
    assert root.stat().st_mode & 0o777 == 0o700
    assert (tool.stat().st_mode & 0o777, secret.stat().st_mode & 0o777) == (0o700, 0o600)
    assert Path("/etc/hostname").stat().st_mode & 0o004
    assert [record.getMessage() for record in caplog.records] == [
        f"took access to {root} away from other users: folders are 0700 now, files 0600"
    ]
    caplog.clear()
    Home(root).create()
    assert caplog.records == []
