"""Locate the home folder and what is kept in it, such as the file by which its server says where it is."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import InputError, StoreError

if TYPE_CHECKING:
    from prony.store.process_owner import Owner

VARIABLE = "PRONY_HOME"
_HINT = f"set {VARIABLE} to a folder that you may write to"
# An id becomes the name of a folder and may come from a stranger's file: nothing that could climb out of the home.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_OTHERS = 0o077  # what the mode of a file grants to anybody but its owner


@dataclass(frozen=True)
class Home:
    """Where each kept thing lies; nothing is made on disk before `create`."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "prony.db"

    @property
    def lock(self) -> Path:
        """Held while the schema or whole folders change."""
        return self.root / "prony.lock"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def moving(self) -> Path:
        """Folders on their way in or out; whatever lies here while nobody holds the lock is rubbish."""
        return self.results / ".moving"

    @property
    def uploads(self) -> Path:
        """Results that agents are sending to a server, before they are whole."""
        return self.root / "uploads"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def engines(self) -> Path:
        return self.root / "engines"

    def experiment_folder(self, experiment_id: str) -> Path:
        return self.results / safe_id(experiment_id)

    def result_folder(self, experiment_id: str, job_id: str, attempt: int = 1) -> Path:
        """Return where the runner writes one attempt of a job; the first has the job's plain name."""
        name = safe_id(job_id) if attempt == 1 else f"{safe_id(job_id)}.{attempt}"
        return self.experiment_folder(experiment_id) / name

    def create(self) -> Home:
        """Make what is missing, or say why it cannot be used. Nobody but its owner may look into it."""
        for folder in (self.root, self.results, self.cache, self.engines):
            _make(folder)
        if sys.platform != "win32":
            _close(self.root)
        return self


def home(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Home:
    """Return the home that the environment names, or this system's usual place for a program's data."""
    named = environ.get(VARIABLE)
    if named:
        return Home(_expand(Path(named)).absolute())
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return Home(Path(local) / "Prony" if local else _user_home(environ) / "AppData" / "Local" / "Prony")
    if platform == "darwin":
        return Home(_user_home(environ) / "Library" / "Application Support" / "Prony")
    data = environ.get("XDG_DATA_HOME", "")
    # The XDG specification asks to pass over a relative path.
    return Home((Path(data) if Path(data).is_absolute() else _user_home(environ) / ".local" / "share") / "prony")


def safe_id(text: str) -> str:
    """Return an id that may name a folder, or refuse it."""
    if _ID.fullmatch(text):
        return text
    raise InputError(f"{text!r} cannot be an id", hint="an id has letters, digits, '.', '_' and '-', at most 128")


def _user_home(environ: Mapping[str, str]) -> Path:
    named = environ.get("HOME")
    return Path(named) if named else _expand(Path("~"))


def _expand(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as exc:
        raise StoreError(f"cannot find {path}: this user has no home folder", hint=_HINT) from exc


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        raise StoreError(f"a file is in the way of the folder {folder}", hint=f"move it away, or {_HINT}") from exc
    except OSError as exc:
        raise StoreError(f"cannot make {folder}: {exc.strerror}", hint=_HINT) from exc
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"{folder} cannot be written to", hint=_HINT)


def _close(root: Path) -> None:
    """Take a home that others may look into away from them: its database holds tokens and secrets of alarms."""
    if not root.stat().st_mode & _OTHERS:
        return
    import logging

    log = logging.getLogger(__name__)
    try:
        root.chmod(0o700)
        for path in _iterate_files(root):
            with suppress(FileNotFoundError):  # another command is at work here
                if not path.is_symlink() and (mode := path.stat().st_mode) & _OTHERS:
                    path.chmod(mode & 0o700)
    except OSError as exc:
        log.warning("other users can read %s, and its permissions cannot be changed: %s", root, exc.strerror)
    else:
        log.warning("took access to %s away from other users: folders are 0700 now, files 0600", root)


def _iterate_files(root: Path) -> Iterator[Path]:
    """Return everything in a home but what was only downloaded, which may be a great many files and no secret."""
    for path in root.iterdir():
        yield path
        if path.name not in ("cache", "engines") and path.is_dir() and not path.is_symlink():
            yield from path.rglob("*")


def server_file(home: Home) -> Path:
    return home.root / "server.json"


@dataclass(frozen=True)
class ServerNote:
    """What a server left in the home: where it is, and which process it is, where it says so."""

    url: str
    process: Owner | None = None

    @property
    def is_stale(self) -> bool:
        """Is the server known to be gone? It takes the file away when it ends; one that was killed could not."""
        from prony.store.process_owner import lives

        return self.process is not None and lives(self.process) is False


def read_server_note(home: Home) -> ServerNote | None:
    """Return what the home's server left there, whether it still runs or not."""
    try:
        left = json.loads(server_file(home).read_bytes())
        url = left["url"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return ServerNote(url, _read_process(left.get("process"))) if isinstance(url, str) else None


def running_server(home: Home) -> str | None:
    """Return the address that a running server left in the home; None also where only a killed one did."""
    note = read_server_note(home)
    return None if note is None or note.is_stale else note.url


def _read_process(written: object) -> Owner | None:
    """Return the process that is named, or None where another version of Prony wrote something else, or nothing."""
    from prony.store.process_owner import Owner

    try:
        return Owner.read(json.dumps(written))
    except TypeError:
        return None
