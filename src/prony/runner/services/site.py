"""Give a service its folder, user and free ports, and find out who listens on a port."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from prony.errors import CapacityError

ORDINARY = "nobody"


def made_folder() -> Path:
    """Return a new folder that every user can get to; it is nobody else's until it is handed over."""
    for place in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):
        if Path(place).is_dir() and is_reachable(Path(place).resolve()):
            return Path(tempfile.mkdtemp(prefix="prony-service-", dir=Path(place).resolve()))
    raise CapacityError(
        "no folder for temporary files is open to other users",
        hint="set TMPDIR to a folder that all users can open",
        code="no_folder",
    )


def with_own_programs(path: str) -> str:
    """Return where a shell is to look for programs: also beside the interpreter that runs Prony, where packages put
    theirs."""
    return os.pathsep.join([path or os.defpath, str(Path(sys.executable).parent)])


def is_reachable(path: Path) -> bool:
    """Return whether a user without any rights can get to a path: every folder above lets all pass."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents) if folder.is_dir())


def ordinary_user() -> tuple[int, int] | None:
    """Return the user and group that a service is given which refuses to be root; None where we are not root."""
    if os.getuid() != 0:
        return None
    import pwd

    try:
        entry = pwd.getpwnam(ORDINARY)
    except KeyError as exc:
        hint = f"useradd --system {ORDINARY}, or run Prony as an ordinary user"
        raise CapacityError(f"user {ORDINARY} not found", hint=hint, code="no_user") from exc
    return entry.pw_uid, entry.pw_gid


def give_to_user(folder: Path, uid: int, gid: int) -> None:
    """Make a folder and all in it the user's own."""
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, uid, gid)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all in it, where it is still there."""
    shutil.rmtree(folder, ignore_errors=True)


LOOPBACK = "127.0.0.1"
_LISTENS = "0A"
_TAKEN = re.compile(
    r"address.{0,80}(in use|not available)|port.{0,80}(in use|already allocated)|EADDRINUSE"
    r"|(could ?n.t|could not|cannot|can't|failed to) bind",
    re.IGNORECASE,
)


@contextmanager
def reserve_port(*, hold: bool = True, host: str = LOOPBACK) -> Iterator[int]:
    """Give a port that the kernel chose; with an empty `host` it is free on every address of this machine.

    While the block runs nobody else is given it: a socket stays bound to it that never listens, and a server that
    reuses addresses (nearly all do) can listen there nevertheless. Without `hold` it is only free at this moment."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind((host, 0))
        port: int = kept.getsockname()[1]
        if not hold:
            kept.close()
        yield port


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """Return several different ports that are free now, for a server that needs more than its own."""
    with ExitStack() as block:
        return [block.enter_context(reserve_port(host=host)) for _ in range(count)]


def is_port_taken(port: int) -> bool:
    """Return whether somebody listens on the port now."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def says_taken(text: str) -> bool:
    """Return whether a server's words say that its address belongs to another."""
    return _TAKEN.search(text) is not None


def is_foreign(port: int, pids: Iterable[int], proc: Path = Path("/proc")) -> bool:
    """Return whether somebody besides these processes listens on the port; False where the system does not tell."""
    listening = {inode for name in ("tcp", "tcp6") for inode in _listeners(proc / "net" / name, port)}
    ours: set[str] = set()
    is_known = False
    for pid in pids:
        with suppress(OSError):
            ours.update(_sockets(proc / str(pid) / "fd"))
            is_known = True
    return is_known and not listening <= ours


def _listeners(table: Path, port: int) -> Iterator[str]:
    """Yield the inode of every socket that listens on the port."""
    with suppress(OSError):
        for line in table.read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                yield words[9]


def _sockets(folder: Path) -> Iterator[str]:
    for descriptor in folder.iterdir():
        with suppress(OSError):
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                yield target[8:-1]
