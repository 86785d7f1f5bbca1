"""Run a real nginx or Caddy in front of a test server, with a test's or the documented configuration."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from servers.certificates import Certificate
from servers.needs import lack
from servers.ports import free_port
from servers.process import DieWithParent

DOCUMENTED = Path(__file__).parents[2] / "docs" / "proxies"
HOST = "prony.example.org"
_READY_S = 60.0
_TRIES = 3
_NGINX = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    {temporary}
    {server}
}}
"""
_PLAIN = "server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {behind}; }} }}"
_CADDY = "{{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}}\n"


class PortTakenError(Exception):
    """Somebody else took the port between its choice and its use."""


@contextmanager
def plain_nginx(folder: Path, behind: str) -> Iterator[str]:
    """Run an nginx that was told `proxy_pass` and nothing else; give its address."""
    with _nginx(folder, lambda port: _PLAIN.format(port=port, behind=behind)) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def documented_nginx(folder: Path, behind: str, made: Certificate) -> Iterator[int]:
    """Run the nginx of the documents, with TLS for `HOST`; give its port on 127.0.0.1."""

    def server(port: int) -> str:
        return _replaced(
            (DOCUMENTED / "nginx.conf").read_text(),
            {
                "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
                "/etc/ssl/prony.example.org.pem": str(made.certificate),
                "/etc/ssl/prony.example.org.key": str(made.key),
                "http://127.0.0.1:7337": behind,
            },
        )

    with _nginx(folder, server) as port:
        yield port


@contextmanager
def documented_caddy(folder: Path, behind: str, made: Certificate) -> Iterator[int]:
    """Run the Caddy of the documents, with a certificate that a test can check; give its port on 127.0.0.1."""
    program = shutil.which("caddy")
    if program is None:
        lack("caddy", "no caddy here: apt-get install caddy")
    folder.mkdir(parents=True, exist_ok=True)
    for left in reversed(range(_TRIES)):
        port = free_port()
        names = {
            f"{HOST} {{": f"{HOST}:{port} {{\n\ttls {made.certificate} {made.key}",
            "127.0.0.1:7337": behind.removeprefix("http://"),
        }
        text = _CADDY.format() + _replaced((DOCUMENTED / "Caddyfile").read_text(), names)
        (folder / "Caddyfile").write_text(text)
        command = [program, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
        places = {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}
        try:
            with _running(command, folder, port, places):
                yield port
                return
        except PortTakenError:
            if not left:
                raise


@contextmanager
def _nginx(folder: Path, server_of: Callable[[int], str]) -> Iterator[int]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        lack("nginx", "no nginx here: apt-get install nginx-light")
    folder.mkdir(parents=True, exist_ok=True)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    for left in reversed(range(_TRIES)):
        port = free_port()
        (folder / "nginx.conf").write_text(_NGINX.format(folder=folder, temporary=temporary, server=server_of(port)))
        command = [program, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
        try:
            with _running(command, folder, port, {}):
                yield port
                return
        except PortTakenError:
            if not left:
                raise


@contextmanager
def _running(command: Sequence[str], folder: Path, port: int, extra: Mapping[str, str]) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env=os.environ | dict(extra),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - nothing but a system call
        )
    try:
        _wait(process, port, folder / "log")
        yield
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.02)
    said = log.read_text(errors="replace")[-1500:]
    if "address already in use" in said.lower():
        raise PortTakenError(said)
    raise AssertionError(f"the proxy does not start: {said}")


def _replaced(text: str, names: Mapping[str, str]) -> str:
    for name, by in names.items():
        assert text.count(name) == 1, f"{name!r} is {text.count(name)} times in the file of the documents"
        text = text.replace(name, by)
    return text
