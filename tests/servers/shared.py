"""Share one PostgreSQL among all processes that name the same folder.

Whoever comes first has a keeper started. Each user holds a shared lock for as long as it lives, and the keeper waits
for the lock that excludes them all: when the last user has ended, by whatever way, the system grants it, and the server
ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servers.binaries import AbsentError, Programs
from servers.process import is_alive

if TYPE_CHECKING:
    import psycopg

Reference = dict[str, Any]
USERS, REFERENCE = "users", "server.json"
_TEMPLATE = "prony_template"
_KNOWS_STRATEGIES = 150000
# Long enough for a package manager on a slow line.
_START_S = 600.0


@dataclass(frozen=True)
class Shared:
    """`url` is the administrator's; `programs` start further servers, and `folder` is swept when this one ends."""

    url: str
    programs: Programs
    folder: Path
    place: Path

    def url_of(self, database: str) -> str:
        return f"{self.url.rpartition('/')[0]}/{database}"

    def create(self, *, template: str = "template1") -> str:
        """Make a database; return its name."""
        name = f"t_{uuid.uuid4().hex}"
        # As files: the log of writes would hold every page of it once more. Older servers know no other way.
        way = " STRATEGY FILE_COPY" if self._connection.info.server_version >= _KNOWS_STRATEGIES else ""
        self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"{way}')
        return name

    def create_migrated(self) -> str:
        """Make a database that has Prony's tables; return its name."""
        return self.create(template=self._template)

    def drop(self, name: str) -> None:
        self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def close(self) -> None:
        """Close the connection, if there is one."""
        if "_connection" in vars(self):
            self._connection.close()

    @cached_property
    def _connection(self) -> psycopg.Connection[tuple[object, ...]]:
        """One for all that is asked: to make another takes longer than most questions."""
        import psycopg

        return psycopg.connect(self.url, autocommit=True)

    @cached_property
    def _template(self) -> str:
        with _alone(self.place):
            known = {row[0] for row in self._execute("SELECT datname FROM pg_database")}
            if _TEMPLATE not in known:
                self._make_template()
        return _TEMPLATE

    def _make_template(self) -> None:
        from prony.store.database import connect_database
        from prony.store.home import Home
        from prony.store.schema import upgrade

        # Under another name until it is whole: a migration that fails must fail for everybody.
        name = self.create()
        engine = connect_database(Home(self.place), self.url_of(name))
        upgrade(engine, Home(self.place))
        engine.dispose()
        self._execute(f'ALTER DATABASE "{name}" RENAME TO "{_TEMPLATE}"')

    def _execute(self, statement: str) -> list[tuple[object, ...]]:
        done = self._connection.execute(statement.encode())
        return done.fetchall() if done.description else []


@contextmanager
def shared(place: Path) -> Iterator[Shared]:
    """Use the server of `place`, started where none runs; an AbsentError says why there can be none."""
    place.mkdir(parents=True, exist_ok=True)
    users = os.open(place / USERS, os.O_RDWR | os.O_CREAT)
    try:
        with _alone(place):
            # Waits where a keeper is just ending its server, because the last user had gone.
            fcntl.flock(users, fcntl.LOCK_SH)
            reference = _read(place) or _start(place)
        if "absent" in reference:
            raise AbsentError(reference["absent"])
        programs = Programs(Path(reference["programs"]), reference["account"])
        with closing(Shared(reference["url"], programs, Path(reference["folder"]), place)) as server:
            yield server
    finally:
        os.close(users)  # gives the lock back too


def wait_ended(place: Path, *, within_s: float = 120.0) -> bool:
    """Wait until the server of `place`, which nobody uses any more, has ended; False when it has not in that time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if "pid" not in (_read(place) or {}) and _is_free(place):
            return True
        time.sleep(0.01)
    return False


def _is_free(place: Path) -> bool:
    """Return whether neither users nor a keeper hold their lock."""
    if not (place / USERS).exists():
        return True
    users = os.open(place / USERS, os.O_RDWR)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(users)


def _read(place: Path) -> Reference | None:
    """Return what is known of a server; nothing of one whose keeper was killed."""
    try:
        found: Reference = json.loads((place / REFERENCE).read_text())
    except FileNotFoundError:
        return None
    return found if "absent" in found or is_alive(found["pid"]) else None


def _start(place: Path) -> Reference:
    _sweep(place)
    command = [sys.executable, "-m", "servers.keeper", str(place)]
    log = (place / "keeper.log").open("wb")
    with log:
        keeper = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert keeper.stdout is not None
    with keeper.stdout:
        line = keeper.stdout.readline()
    if not line:
        said = (place / "keeper.log").read_text(errors="replace")
        raise RuntimeError(f"the keeper of PostgreSQL ended with {keeper.wait()}: {said[-2000:]}")
    (place / REFERENCE).write_bytes(line)
    found: Reference = json.loads(line)
    return found


def _sweep(place: Path) -> None:
    """Remove what a server left whose keeper was killed."""
    if (place / REFERENCE).exists():
        shutil.rmtree(json.loads((place / REFERENCE).read_text())["folder"], ignore_errors=True)
        (place / REFERENCE).unlink()


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    from prony.store.lock import hold_file_lock

    with hold_file_lock(place / "lock", wait_s=_START_S):
        yield
