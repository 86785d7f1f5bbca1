"""`prony import`: an exported experiment or a result folder in, a stored experiment out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    path: Annotated[Path, typer.Argument(help="an exported folder, or one result folder")],
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Bring in results made elsewhere; their checksums are verified and their numbers computed again."""
    from prony.app.api import Bench
    from prony.cli.output import print_json, print_text

    with Bench.open() as bench:
        experiment = bench.import_(path)
    if json:
        print_json({"id": experiment.id, "name": experiment.name, "state": experiment.state.value})
    else:
        print_text(f"imported {experiment.name} as {experiment.id}")
