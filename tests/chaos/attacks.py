"""Attack a real server while other clients ask it things, and time what they see."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from chaos.fleet import Fleet
from servers.waiting import wait_for

RECIPE = 'name: quiet\nworkload: {kind: model, model: "zoo:noop", engine: onnxruntime}\n'
# Nobody waits for a second, however busy the machine is: what it kept the server from running is not counted.
LONGEST_STALL_S = 1.0
# From one signal on, whatever happens.
LONGEST_END_S = 10.0


@dataclass
class Others:
    """What clients who do nothing wrong saw: how long each request took, and whatever went wrong."""

    seconds: list[tuple[float, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def wait_for_more(self, count: int = 6) -> None:
        """Wait until they have asked so many times from now on."""
        wanted = len(self.seconds) + count
        wait_for(lambda: len(self.seconds) >= wanted, f"{count} more requests of others: {self.faults[:5]}", 180)

    def check(self, usual_s: float, at_least: int = 1) -> None:
        """Refuse a stall; how long a request usually takes is only told."""
        assert not self.faults, self.faults[:5]
        assert len(self.seconds) >= at_least, f"only {len(self.seconds)} requests were asked meanwhile"
        worst = max(self.seconds)
        told = f"{worst[1]} took {worst[0]:.1f} s, the slowest of {len(self.seconds)}; usual are {usual_s:.2f} s"
        assert worst[0] < LONGEST_STALL_S, told


@contextmanager
def others_asking(made: Fleet) -> Iterator[Others]:
    """Ask for the server's health and a list, and submit a recipe, over and over, by a connection of its own each.

    What the machine kept the server or these clients from running counts for nothing: that is no attack's doing."""
    seen, is_over = Others(), threading.Event()
    assert made.servers[0].child is not None
    server_pid = made.servers[0].child.pid

    def ask() -> None:
        while not is_over.is_set():
            for what, call in _CALLS:
                begin, waits = time.monotonic(), waits_of(server_pid)
                try:
                    with httpx.Client(base_url=made.url, timeout=60, trust_env=False) as client:
                        call(client).raise_for_status()
                except httpx.HTTPError as exc:
                    seen.faults.append(f"{what} after {time.monotonic() - begin:.1f} s: {exc!r}")
                seen.seconds.append((time.monotonic() - begin - starved_since(waits, server_pid), what))
            is_over.wait(0.1)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        yield seen
    finally:
        is_over.set()
        asking.join(120)


_OWN = "this thread"


def waits_of(server_pid: int) -> dict[str, float]:
    """Return for how many seconds each thread of the server, and this thread, wanted a core and got none."""
    found = {file.parent.name: _waited_s(file) for file in Path(f"/proc/{server_pid}/task").glob("*/schedstat")}
    return found | {_OWN: _waited_s(Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/schedstat"))}


def starved_since(before: dict[str, float], server_pid: int) -> float:
    """Return for how long the server's event loop and this thread wanted a core since then and got none, and of its
    other threads the one that waited longest, which may be the one that answers; 0 where no system tells."""
    grown = {thread: waited_s - before.get(thread, 0.0) for thread, waited_s in waits_of(server_pid).items()}
    return grown.pop(_OWN) + grown.pop(str(server_pid), 0.0) + max(grown.values(), default=0.0)


def time_end(process: subprocess.Popen[Any], number: signal.Signals) -> float | None:
    """Send one signal and return how long the server took to end, less what the machine kept it from running; None
    where it did not end in a minute."""
    begin, waits = time.monotonic(), waits_of(process.pid)
    process.send_signal(number)
    kept_s = 0.0
    while process.poll() is None:
        if time.monotonic() - begin > 60:
            return None
        kept_s = max(kept_s, starved_since(waits, process.pid))
        time.sleep(0.02)
    return time.monotonic() - begin - kept_s


def _waited_s(schedstat: Path) -> float:
    try:
        return int(schedstat.read_text().split()[1]) / 1e9
    except OSError:  # the thread has ended, or this system has no such file
        return 0.0


_CALLS: tuple[tuple[str, Callable[[httpx.Client], httpx.Response]], ...] = (
    ("health", lambda client: client.get("/api/v1/health")),
    ("the list of experiments", lambda client: client.get("/api/v1/experiments")),
    ("a submission", lambda client: client.post("/api/v1/experiments", json={"text": RECIPE})),
)


def warm(url: str) -> float:
    """Ask everything once, so that what is imported or started late is no stall; return how long a request takes."""
    with httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
        client.post("/api/v1/recipes/check", json={"text": RECIPE}).raise_for_status()
        slowest = 0.0
        for number in range(4):
            for _, call in _CALLS:
                begin = time.monotonic()
                call(client).raise_for_status()
                slowest = max(slowest, time.monotonic() - begin if number else 0.0)
    return slowest


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.settimeout(60)
    return connection


def send_until_closed(port: int, begin: bytes, piece: bytes, most_bytes: int) -> tuple[int, bytes]:
    """Send pieces until the server has enough of them; return how many bytes it took, and what it said."""
    with connect(port) as connection:
        sent, said = 0, b""
        with suppress(ConnectionError):
            connection.sendall(begin)
            while sent < most_bytes:
                connection.sendall(piece)
                sent += len(piece)
        with suppress(OSError):  # it may have been closed
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while got := connection.recv(65536):
                said += got
    return sent, said


def limited(made: Fleet, descriptors: int) -> None:
    """Let the first server have so many descriptors."""
    server = made.servers[0]
    server.command = ["bash", "-c", f'ulimit -n {descriptors}; exec "$@"', "bash", *server.command]
