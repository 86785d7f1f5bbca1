"""`prony delete`: an experiment in, nothing of it left out."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    experiment: Annotated[str, typer.Argument(help="an id, or the beginning of one")],
    force: Annotated[bool, typer.Option(help="also one that is marked as running")] = False,
) -> None:
    """Delete an experiment and its result folders. Model files are never touched."""
    from prony.app.api import Bench
    from prony.cli.output import print_text

    with Bench.open() as bench:
        print_text(f"deleted {bench.delete(experiment, force=force)}")
