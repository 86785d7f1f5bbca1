"""`prony exec`: job files in, result folders out. What every executor calls, and all that it calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    jobs: Annotated[list[Path], typer.Argument(help="job files; several take turns")],
    out: Annotated[Path, typer.Option("--out", help="result folder; with several jobs, one folder each inside it")],
    calibration: Annotated[str | None, typer.Option(help="id of this machine's calibration, to be quoted")] = None,
    die_with_parent: Annotated[bool, typer.Option("--die-with-parent", hidden=True)] = False,
) -> int:
    """Run jobs without a server or a database; progress goes to standard output as JSON lines."""
    from prony.app.runner import run_files

    return run_files(jobs, out, calibration_id=calibration, die_with_parent=die_with_parent)
