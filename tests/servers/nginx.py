"""Run an nginx with HTTP/2 and HTTP/1.1 in front of a test server."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from servers.binaries import AbsentError
from servers.certificates import Certificate
from servers.ports import free_port
from servers.process import DieWithParent

_READY_S = 120.0
_CONFIGURATION = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_max_body_size 100m;
    {temporary}
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    keepalive_requests {requests};
    server {{
        listen 127.0.0.1:{h2c} http2;
        listen 127.0.0.1:{h2} ssl http2;
        listen 127.0.0.1:{http};
        listen 127.0.0.1:{https} ssl;
        location / {{ proxy_pass {behind}; proxy_http_version 1.1; proxy_buffering off; }}
    }}
}}
"""


@dataclass(frozen=True)
class Nginx:
    """The four addresses of one server."""

    h2c: str
    h2: str
    http: str
    https: str


@contextmanager
def nginx_server(folder: Path, made: Certificate, behind: str, *, requests: int = 100_000) -> Iterator[Nginx]:
    """Run one that passes requests on, until the block ends; it closes a connection after so many requests."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise AbsentError("no nginx here: apt-get install nginx-light")
    folder.mkdir(parents=True, exist_ok=True)
    names = ("h2c", "h2", "http", "https")
    ports = {name: free_port() for name in names}
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    files = {"certificate": made.certificate, "key": made.key}
    text = _CONFIGURATION.format(folder=folder, temporary=temporary, behind=behind, requests=requests, **files, **ports)
    (folder / "nginx.conf").write_text(text)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-e", "stderr", "-p", folder, "-c", folder / "nginx.conf"],
            stdin=subprocess.DEVNULL,
            stderr=log,
            preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - nothing but a system call
        )
    try:
        _wait(process, ports["https"], folder / "log")
        tail = f"?ca={made.ca}"
        yield Nginx(
            f"http://localhost:{ports['h2c']}",
            f"https://localhost:{ports['h2']}{tail}",
            f"http://localhost:{ports['http']}",
            f"https://localhost:{ports['https']}{tail}",
        )
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
            return
        time.sleep(0.01)
    raise AbsentError(f"nginx does not start: {log.read_text(errors='replace')[-600:]}")
