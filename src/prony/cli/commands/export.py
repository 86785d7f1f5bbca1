"""`prony export`: an experiment in, a folder that can be carried elsewhere out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    experiment: Annotated[str, typer.Argument(help="an id, the beginning of one, or last")],
    to: Annotated[Path, typer.Option("--to", help="folder to make")],
    overwrite: Annotated[bool, typer.Option(help="replace a folder that exists")] = False,
) -> None:
    """Copy an experiment with its recipe, results and checksums; `prony import` brings it back anywhere."""
    from prony.app.api import Bench
    from prony.cli.output import print_note

    with Bench.open() as bench:
        print_note(f"exported to {bench.export(experiment, to, overwrite=overwrite)}")
