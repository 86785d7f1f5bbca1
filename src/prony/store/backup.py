"""Back up a home into one file, and restore it into an empty home: every experiment with its samples.

The file is a plain tar: result folders and what else a home alone has, then the database, then `backup.json` with the
SHA-256 of each. The database in it is SQLite, whichever a server uses, so a backup can be restored into either.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tarfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple

from pydantic import ValidationError
from sqlalchemy import Engine, delete, select

from prony import __version__
from prony.errors import ConflictError, InputError, NotFoundError, StoreError
from prony.model.base import Noun
from prony.ports.clock import Clock, SystemClock
from prony.store import tables
from prony.store.copy_rows import copy_rows, is_filled
from prony.store.database import connect_database, name_of, reading, translate_errors, writing
from prony.store.home import Home
from prony.store.lock import hold_file_lock
from prony.store.revision import HEAD
from prony.store.schema import revision, upgrade

BACKUP_MANIFEST = "backup.json"
# What only this home has. A cache and engines can be fetched again, and an agent's identity belongs to one machine.
KEPT = ("results", "scripts", "logs", "placements", "targets.toml", "owner-token")
_DATABASE = "prony.db"
_PIECE = 2**20


class BackupManifest(Noun):
    """What a backup holds: its experiments, the SHA-256 of every file, and result folders that the home lacked."""

    version: int = 1
    prony_version: str = __version__
    made_at: datetime
    experiments: int
    missing: tuple[str, ...] = ()
    files: dict[str, str]


class _Contents(NamedTuple):
    experiments: frozenset[str]
    folders: frozenset[str]


def write_backup(home: Home, to: Path, *, url: str = "", clock: Clock | None = None) -> BackupManifest:
    """Write a backup of a home that may be in use; `to` appears in one step, whole.

    The database is copied first: what is measured meanwhile may be in the folders, and is then in no row.
    """
    to = to.absolute()
    if to.exists():
        raise ConflictError(f"{to} exists already", hint="name another file")
    if not url and not home.database.is_file():
        raise NotFoundError(f"{home.root} has no database", hint="set PRONY_HOME, or name the database: --database URL")
    scratch = to.with_name(f".{to.name}.{uuid.uuid4().hex}")
    with _translate_disk_errors(to):
        try:
            scratch.mkdir(mode=0o700, parents=True)
            manifest = _write_files(home, url, scratch, (clock or SystemClock()).now())
            (scratch / "backup.tar").chmod(0o600)  # it holds tokens and secrets of alarms
            (scratch / "backup.tar").replace(to)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return manifest


def restore_backup(archive: Path, home: Home, *, url: str = "") -> BackupManifest:
    """Unpack a backup into an empty home, check every file, and bring the database up to date."""
    if not archive.is_file():
        raise NotFoundError(f"there is no file {archive}", hint="name a file that prony backup wrote")
    with _translate_disk_errors(home.root):
        home.create()
        with hold_file_lock(home.lock):
            _check_empty(home)
            staged = Home(home.root / f".restore.{uuid.uuid4().hex}")
            try:
                manifest = _unpack_checked(archive, staged.root)
                _open_database(staged, url)
                _move_in(staged.root, home.root)
            finally:
                shutil.rmtree(staged.root, ignore_errors=True)
    return manifest


# Out


def _write_files(home: Home, url: str, scratch: Path, made_at: datetime) -> BackupManifest:
    source = connect_database(home, url)
    try:
        copy = _copy_database(source, Home(scratch))
        before = _read_contents(copy)
        with tarfile.open(scratch / "backup.tar", "x") as tar:
            files = {name: _add_file(tar, name, path) for name, path in _iterate_kept(home)}
            _forget_deleted(copy, before.experiments - _read_contents(source).experiments)
            after = _read_contents(copy)
            copy.dispose()
            manifest = BackupManifest(
                made_at=made_at,
                experiments=len(after.experiments),
                missing=_list_missing(after.folders, files),
                files={name: sha256 for name, sha256 in files.items() if sha256}
                | {_DATABASE: _add_file(tar, _DATABASE, scratch / _DATABASE)},
            )
            (scratch / BACKUP_MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
            _add_file(tar, BACKUP_MANIFEST, scratch / BACKUP_MANIFEST)
    finally:
        source.dispose()
    return manifest


def _copy_database(source: Engine, scratch: Home) -> Engine:
    """Copy the database as it is now into a file of its own; others may go on writing."""
    if source.dialect.name == "sqlite":
        with translate_errors(source), source.connect() as connection, closing(sqlite3.connect(scratch.database)) as to:
            connection.connection.driver_connection.backup(to)  # type: ignore[union-attr]
        return connect_database(scratch)
    found = revision(source)
    if found != HEAD:
        raise ConflictError(
            f"{name_of(source)} has the schema {found}, and this Prony the schema {HEAD}",
            hint="back it up with the version of Prony that its server runs",
        )
    target = connect_database(scratch)
    upgrade(target, scratch)
    copy_rows(source, target)
    return target


def _iterate_kept(home: Home) -> Iterator[tuple[str, Path]]:
    """Return the files to keep by their name in the backup; what is on its way in or out is hidden, and not kept."""
    for name in KEPT:
        place = home.root / name
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            relative = path.relative_to(home.root)
            if path.is_file() and not path.is_symlink() and not any(part.startswith(".") for part in relative.parts):
                yield relative.as_posix(), path


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> str:
    """Add a file as long as it is now, and return its SHA-256; nothing where it was deleted meanwhile."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        member = tarfile.TarInfo(name)
        member.size, member.mode = os.fstat(file.fileno()).st_size, 0o600
        reader = _HashingReader(file)
        tar.addfile(member, reader)  # all that it asks for is `read`
        return reader.sha256.hexdigest()
    return ""


class _HashingReader:
    """Hashes what is read through it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.sha256.update(data)
        return data


def _read_contents(engine: Engine) -> _Contents:
    with reading(engine) as connection:
        experiments = connection.execute(select(tables.experiment.c.id)).scalars()
        folders = connection.execute(select(tables.result.c.folder)).scalars()
        return _Contents(frozenset(experiments), frozenset(folders))


def _forget_deleted(copy: Engine, gone: Collection[str]) -> None:
    """Delete from the copy what was deleted after it was made, for its folders may be gone."""
    with writing(copy) as connection:
        for experiment_id in gone:
            connection.execute(delete(tables.experiment).where(tables.experiment.c.id == experiment_id))


def _list_missing(folders: Collection[str], files: Collection[str]) -> tuple[str, ...]:
    """Return the result folders that rows name and the home does not have."""
    there = {name.removeprefix("results/").rpartition("/")[0] for name in files if name.startswith("results/")}
    parents = {str(parent) for folder in there for parent in (Path(folder), *Path(folder).parents)}
    return tuple(sorted(folder for folder in folders if folder not in parents))


# In


def _check_empty(home: Home) -> None:
    for name in (_DATABASE, *KEPT):
        place = home.root / name
        if place.is_file() or (place.is_dir() and any(place.iterdir())):
            raise ConflictError(
                f"the home {home.root} is not empty: it has {name}", hint="set PRONY_HOME to a new folder"
            )


def _unpack_checked(archive: Path, to: Path) -> BackupManifest:
    """Unpack plain files alone, and compare each with the manifest."""
    to.mkdir(mode=0o700)
    found: dict[str, str] = {}
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                if not member.isreg():
                    raise InputError(f"{archive} holds {member.name}, which is not a plain file", hint=_HINT)
                safe = tarfile.data_filter(member, str(to))
                found[safe.name] = _unpack_file(tar, safe, to / safe.name)
        manifest = BackupManifest.model_validate_json((to / BACKUP_MANIFEST).read_bytes())
    except (tarfile.TarError, ValidationError, FileNotFoundError) as exc:
        raise InputError(f"{archive} is not a whole backup: {_first_line(exc)}", hint=_HINT) from exc
    del found[BACKUP_MANIFEST]
    if wrong := sorted(set(found.items()) ^ set(manifest.files.items())):
        raise InputError(f"{archive} is damaged: {wrong[0][0]} differs from its checksum", hint=_HINT)
    (to / BACKUP_MANIFEST).unlink()
    return manifest


_HINT = "take a file that prony backup wrote, or an older one"


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, to: Path) -> str:
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name} cannot be read")
    sha256 = hashlib.sha256()
    to.touch(mode=0o600, exist_ok=False)
    with source, to.open("wb") as out:
        while piece := source.read(_PIECE):
            sha256.update(piece)
            out.write(piece)
    return sha256.hexdigest()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _open_database(staged: Home, url: str) -> None:
    """Bring the database up to date, and copy it where the server's is another one."""
    source = connect_database(staged)
    try:
        upgrade(source, staged)
        if url:
            _fill_database(source, url, staged)
    finally:
        source.dispose()
    staged.lock.unlink(missing_ok=True)  # it must not take the place of the one that is held
    if url:
        for path in staged.root.glob(f"{_DATABASE}*"):
            path.unlink()


def _fill_database(source: Engine, url: str, staged: Home) -> None:
    target = connect_database(staged, url)
    try:
        upgrade(target, staged)
        if is_filled(target):
            raise ConflictError(f"{name_of(target)} is not empty", hint="create a new database, and name that one")
        copy_rows(source, target)
    finally:
        target.dispose()


def _move_in(staged: Path, root: Path) -> None:
    """Put everything into its place, the database last: without it, no command takes the home for a whole one."""
    for path in sorted(staged.iterdir(), key=lambda one: one.name == _DATABASE):
        place = root / path.name
        if place.is_dir():
            place.rmdir()  # empty, as was checked
        path.rename(place)


# Both


@contextmanager
def _translate_disk_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreError(
            f"cannot use {exc.filename or place}: {exc.strerror}", hint="check the free space and the permissions there"
        ) from exc
