"""Run a PostgreSQL on a data folder that survives being killed."""

from __future__ import annotations

import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from servers.binaries import AbsentError, Programs, find
from servers.ports import free_port
from servers.process import DieWithParent, kill_all

USER = "prony"
# The operating system survives every test, so nothing need reach the disk; a commit must still reach the system.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_wal_size": "256MB",  # the folder may be in memory
    "timezone": "America/St_Johns",  # far from UTC, and not by whole hours: whoever forgets the zone is found out
}
_READY_S = 120.0
# From here on the password may be turned over once and not 4,096 times, in each of thousands of connections.
_KNOWS_ITERATIONS = 16


class Postgres:
    """One server. It can be killed and started again: same folder, same URL, and what was committed is there."""

    def __init__(
        self, programs: Programs | None = None, *, inside: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._programs = programs or find()
        self.folder = self._programs.make_folder(inside)
        self._first = None if inside is None else inside / "first"
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        self.settings = {**_SETTINGS, **(settings or {})}
        self._secret = secrets.token_hex(16)
        self._port = 0
        self._has_answered = False
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where to connect to, as the server's administrator; the same after every start."""
        return self.url_of("postgres")

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}:{self._secret}@127.0.0.1:{self._port}/{database}"

    def start(self) -> Self:
        """Start it, and return when it answers."""
        if not self._data.exists():
            self._make_data()
        for _ in range(5):
            # Once it has a port it keeps it: others know it by that.
            self._port = self._port or free_port()
            if self._launched():
                self._has_answered = True
                return self
            if not self._has_answered:
                self._port = 0
        raise AbsentError(f"PostgreSQL in {self._programs.folder} does not start: {self._said()[-600:]}")

    def kill(self) -> None:
        """End it and every process of it at once, in the middle of whatever it does."""
        if self._process is not None:
            kill_all(self._process.pid)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it for good, and remove what it kept."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=60)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement outside of any transaction; return the rows, where it has some."""
        import psycopg

        with psycopg.connect(self.url_of(database), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def _make_data(self) -> None:
        """Make an empty cluster; those inside one folder are copies of the first, which takes initdb a second."""
        if self._first is None:
            self._init_data(self.folder)
            return
        if not self._first.exists():
            made = self._programs.make_folder(self._first.parent)
            self._init_data(made)
            made.rename(self._first)  # whole from the instant in which it is there
        self._secret = (self._first / "secret").read_text()
        command = ["cp", "-a", str(self._first / "data"), str(self._data)]
        subprocess.run(command, check=True, **self._programs.identity())

    def _init_data(self, folder: Path) -> None:
        secret = folder / "secret"
        secret.write_text(self._secret)
        options = ["-A", "scram-sha-256", "-U", USER, f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "-N"]
        if self._programs.account is not None:
            shutil.chown(secret, self._programs.account)
        if _version(self._programs) >= _KNOWS_ITERATIONS:
            options += ["-c", "scram_iterations=1"]
        done = self._programs.run("initdb", "-D", str(folder / "data"), *options)
        if done.returncode:
            raise AbsentError(f"initdb in {self._programs.folder} failed: {done.stderr.strip()[-600:]}")

    def _launched(self) -> bool:
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self._programs.folder / "postgres"), "-D", str(self._data), "-p", str(self._port), *options]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # SIGQUIT: it ends at once, and takes its own children along.
                preexec_fn=DieWithParent(signal.SIGQUIT),  # noqa: PLW1509 - nothing but a system call
                **self._programs.identity(),
            )
        return self._answers()

    def _answers(self) -> bool:
        import psycopg

        assert self._process is not None
        deadline = time.monotonic() + _READY_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url, connect_timeout=30).close()
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _said(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def _version(programs: Programs) -> int:
    found = re.search(r"PostgreSQL\) (\d+)", programs.run("initdb", "--version").stdout)
    return int(found[1]) if found else 0
