"""What the fleet's benchmarks stand on: a real `prony server` process on either database, quantiles, a table's head.

PostgreSQL and Redis are started by the same code that starts them for the tests (`tests/servers`), but PostgreSQL here
waits for its disk, as it does by default.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
import uvloop

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from servers.binaries import AbsentError
from servers.postgres import Postgres

T = TypeVar("T")
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
_ON_DISK = {"fsync": "on", "full_page_writes": "on", "timezone": "UTC"}


@dataclass(frozen=True)
class Serving:
    url: str
    process: psutil.Process

    def cpu_s(self) -> float:
        """Of the server and of the processes in which it opens results."""
        return sum(float(sum(one.cpu_times()[:2])) for one in self._all())

    def rss_bytes(self) -> int:
        return sum(int(one.memory_info().rss) for one in self._all())

    def _all(self) -> list[psutil.Process]:
        return [self.process, *self.process.children()]


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    """Give a name and a URL each; SQLite has none, because the home's own file is meant."""
    try:
        server = Postgres(settings=_ON_DISK).start()
    except AbsentError as exc:
        sys.exit(str(exc))
    try:
        yield {SQLITE: "", POSTGRES: server.url}
    finally:
        server.stop()


def fresh(url: str, like: str = "template1") -> str:
    """Return the URL of a new database on the same server, empty or a copy; SQLite's is new with its home."""
    if not url:
        return ""
    import psycopg

    name = f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{like}"'.encode())
    return f"{url.rpartition('/')[0]}/{name}"


@contextmanager
def prony_server(home: Path, database: str = "", options: Sequence[str] = ()) -> Iterator[Serving]:
    """Run a server in a process of its own while the block runs; `options` are further ones of its command."""
    command = [sys.executable, "-m", "prony", "server", "--port", "0", "--no-auth", "--log-level", "warning", *options]
    command += ["--database", database] if database else []
    with server_process(command, home) as serving:
        yield serving


@contextmanager
def server_process(command: Sequence[str], home: Path) -> Iterator[Serving]:
    """Run a command that serves, and says where in the home's `server.json`, while the block runs."""
    home.parent.mkdir(parents=True, exist_ok=True)
    log = home.with_suffix(".log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=os.environ | {"PRONY_HOME": str(home)}, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield Serving(_url(process, home, log), psutil.Process(process.pid))
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _url(process: subprocess.Popen[bytes], home: Path, log: Path) -> str:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return str(json.loads((home / "server.json").read_text())["url"])
        except FileNotFoundError:
            time.sleep(0.02)
    sys.exit(f"prony server did not start:\n{log.read_text()[-2000:]}")


def run_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())


def recipe(name: str, count: int = 1, *, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the submission of a recipe of so many tiny jobs."""
    said: dict[str, Any] = {
        "name": name,
        "workload": {"kind": "model", "model": "zoo:noop", "engine": "onnxruntime"},
        "measure": {"runs": 20, "warmup": 2, "repeats": 1, "check": False},
        "matrix": {"workload.inputs.seed": list(range(count))},
        "labels": labels or {},
    }
    return {"text": json.dumps(said), "name": f"{name}.json"}


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-round(len(ordered) * share * 1000) // 1000) - 1))]


def spread_text(values_s: Sequence[float]) -> str:
    """Return median, p90, p99 and the worst, in milliseconds."""
    return "".join(f"{quantile(values_s, share) * 1e3:9.1f}" for share in (0.5, 0.9, 0.99, 1.0))


SPREAD_HEAD = f"{'median':>9}{'p90':>9}{'p99':>9}{'max':>9}"


def say_machine() -> None:
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, {load:.1f} processes ran or waited for one in the minute before\n", flush=True)
