"""Keep a shared PostgreSQL running while it has users. Run as a program by `servers.shared`."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

from servers.binaries import AbsentError, find
from servers.postgres import Postgres
from servers.shared import REFERENCE, USERS


def main(place: Path) -> None:
    try:
        programs = find()
        folder = programs.make_folder()
        server = Postgres(programs, inside=folder).start()
    except AbsentError as exc:
        _tell(absent=str(exc))
        return
    about = {"programs": str(programs.folder), "account": programs.account, "folder": str(folder)}
    _tell(url=server.url, pid=os.getpid(), **about)
    users = os.open(place / USERS, os.O_RDWR | os.O_CREAT)
    fcntl.flock(users, fcntl.LOCK_EX)
    # Who comes now waits for our end, and must not find what is no more.
    (place / REFERENCE).unlink(missing_ok=True)
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def _tell(**said: object) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    os.close(sys.stdout.fileno())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
