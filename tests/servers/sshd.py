"""Run a real sshd on a free port that lets in one key, and a client's configuration that knows its host key."""

from __future__ import annotations

import os
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
from servers.ports import free_port
from servers.process import DieWithParent, kill_all

_READY_S = 60.0
# With SHLVL bash takes itself for an inner shell, and reads no ~/.bashrc of whoever runs the tests.
_SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
LogLevel VERBOSE
SetEnv SHLVL=2
"""
_CLIENT = """\
Host there
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
"""


@dataclass(frozen=True)
class Sshd:
    """A server that the host `there` of the client's file `config` means."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def options(self) -> list[str]:
        """Words for every ssh."""
        return ["-F", str(self.config)]

    def count_logins(self) -> int:
        return (self.folder / "log").read_text(errors="replace").count("Accepted publickey")

    def forget_host(self) -> None:
        (self.folder / "known").write_text("")

    def change_host_key(self) -> None:
        """Have the client know another key for this host."""
        _make_key(self.folder / "other")
        self._know("other")

    def _know(self, name: str) -> None:
        kind, key, *_ = (self.folder / f"{name}.pub").read_text().split()
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")


@contextmanager
def sshd_server(folder: Path) -> Iterator[Sshd]:
    """Run one until the block ends; connections that are open then end with it."""
    program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
    if program is None:
        raise AbsentError("no sshd here: apt-get install openssh-server")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host", "user"):
        _make_key(folder / name)
    port = free_port()
    (folder / "sshd_config").write_text(_SERVER.format(port=port, folder=folder))
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    (folder / "config").write_text(_CLIENT.format(port=port, folder=folder, user=user))
    process = subprocess.Popen(
        [program, "-D", "-f", folder / "sshd_config", "-E", folder / "log"],
        stdin=subprocess.DEVNULL,
        preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - nothing but a system call
    )
    server = Sshd(folder, port, process)
    server._know("host")
    try:
        _wait(process, port, folder / "log")
        yield server
    finally:
        kill_all(process.pid)  # a connection that a client keeps is a process of its own
        process.wait()


def _make_key(path: Path) -> None:
    path.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)],
        stdin=subprocess.DEVNULL, capture_output=True, check=True,
    )  # fmt: skip


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
            return
        time.sleep(0.01)
    raise AbsentError(f"sshd does not start: {log.read_text(errors='replace')[-600:] if log.exists() else ''}")
