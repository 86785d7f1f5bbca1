"""Make a folder and choose a user for a service."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from prony.errors import CapacityError

ORDINARY = "nobody"


def made_folder() -> Path:
    """Return a new folder that every user can get to; it is nobody else's until it is handed over."""
    for place in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):
        if Path(place).is_dir() and is_reachable(Path(place).resolve()):
            return Path(tempfile.mkdtemp(prefix="prony-service-", dir=Path(place).resolve()))
    raise CapacityError(
        "no folder for temporary files lets other users in", hint="TMPDIR=/path/that/all/may/enter", code="no_folder"
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
        raise CapacityError(f"there is no user called {ORDINARY}", hint=hint, code="no_user") from exc
    return entry.pw_uid, entry.pw_gid


def handed_over(folder: Path, uid: int, gid: int) -> None:
    """Make a folder and all in it the user's own."""
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, uid, gid)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all in it, where it is still there."""
    shutil.rmtree(folder, ignore_errors=True)
