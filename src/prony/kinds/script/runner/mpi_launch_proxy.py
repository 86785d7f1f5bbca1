"""Stand in for ssh under mpirun: write what it wants started elsewhere to a file for the runner.

`python -I mpi_launch_proxy.py HOST WORD...`, with the folder for the file in `PRONY_ORDERS`. Standard library only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    host, *words = sys.argv[1:]
    file = Path(os.environ["PRONY_ORDERS"]) / host
    unfinished = file.with_suffix(".part")
    unfinished.write_text(" ".join(words))
    unfinished.replace(file)


if __name__ == "__main__":
    main()
