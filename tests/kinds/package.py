"""A package outside Prony that brings a kind of workload: put it on a path, and run commands that find it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.forked import fork_with_path

OUTSIDE = Path(__file__).parent / "outside"
RECIPE = """
name: hashes
workload: {kind: hashing, size: 4096}
matrix:
  workload.algorithm: [sha256, md5]
measure: {repeats: 7}
gates: ["hash_ms.p50 <= 60000"]
"""


@contextmanager
def install_package(place: Path) -> Iterator[str]:
    """Write what an installer would into an empty folder; give the path on which an interpreter finds all of it."""
    info = place / "hashing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hashing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[prony.kinds]\nhashing = hashing\n\n[prony.commands]\nhashing = hashing.command\n"
    )
    path = os.pathsep.join((str(place), str(OUTSIDE)))
    with fork_with_path(path):
        yield path


def prony(*arguments: str, home: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command with a home and a path of its own."""
    environment = os.environ | {"PRONY_HOME": str(home), "PYTHONPATH": path, "COLUMNS": "200"}
    command = [sys.executable, "-m", "prony", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
