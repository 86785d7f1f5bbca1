"""Run one rank under torchrun or mpirun, with its own log files and exit record.

`python -I rank.py ORDER.json` is what the launcher starts on every rank. It gives the rank its log files and the
variables that say which one it is, starts the command, and writes down how it ended; the launcher hears the same.
Standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# What a launcher calls these, the first that is there; those of torchrun are the names that all of them get.
_NAMES = {
    "RANK": ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"),
    "WORLD_SIZE": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "LOCAL_RANK": ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
}


def _rank_variables() -> dict[str, str]:
    """Return the variables that say which rank this is."""
    return {
        name: found
        for name, names in _NAMES.items()
        if (found := next((os.environ[one] for one in names if one in os.environ), None)) is not None
    }


def run_rank(order: dict[str, Any]) -> int:
    told = _rank_variables()
    rank = told.get("RANK", "0")
    folder = Path(order["logs"])
    environment = {**os.environ, **order["environment"], **told}
    begin = order["prefix"] + rank
    with (folder / f"{begin}.out").open("ab") as out, (folder / f"{begin}.err").open("ab") as err:
        try:
            # The launcher may have given this process open files to speak to it by.
            child = subprocess.Popen(
                order["argv"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                cwd=order["folder"],
                close_fds=False,
            )
        except OSError as exc:
            _write_rank_end(order, rank, 127, f"{order['argv'][0]} cannot be started: {exc.strerror or exc}")
            return 127
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: child.send_signal(number))
        status = child.wait()
    _write_rank_end(order, rank, status, "")
    return status if status >= 0 else 128 - status


def _write_rank_end(order: dict[str, Any], rank: str, status: int, reason: str) -> None:
    """Write down how the rank ended, in one step: others do the same at the same time."""
    record = {"rank": int(rank), "status": status, "end_ns": time.perf_counter_ns(), "reason": reason}
    fd = os.open(order["endings"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, ("\n" + json.dumps(record) + "\n").encode())
    os.close(fd)


if __name__ == "__main__":
    if sys.argv[1] == "--find":  # is a module there, under this very interpreter?
        sys.exit(importlib.util.find_spec(sys.argv[2]) is None)
    sys.exit(run_rank(json.loads(Path(sys.argv[1]).read_text())))
