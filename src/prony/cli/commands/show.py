"""`prony show`: an experiment in, its numbers on the terminal out."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    experiment: Annotated[str, typer.Argument(help="an id, the beginning of one, or last")] = "last",
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Show one experiment's numbers, each with its interval and verdict."""
    from prony.app.api import Bench
    from prony.cli.outcome import show

    with Bench.open() as bench:
        show(bench.dossier(experiment), as_json=json)
