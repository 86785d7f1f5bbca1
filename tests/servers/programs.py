"""Run a program to its end, as a person would type it."""

from __future__ import annotations

import subprocess
from pathlib import Path

_PATIENCE_S = 600


def run_program(*words: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Return what a program printed; fail with all that it said where its exit code is not 0."""
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False,
        timeout=_PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
