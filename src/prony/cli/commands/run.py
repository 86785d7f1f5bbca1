"""`prony run`: a recipe in, numbers and a report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prony.cli.outcome import finish


def command(
    recipe: Annotated[Path, typer.Argument(help="a recipe: .yaml, .toml or .json")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="override one key; may be given again")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print the results as JSON")] = False,
    report: Annotated[bool, typer.Option(help="write an HTML report beside the results")] = True,
) -> int:
    """Run a recipe on this machine. Ctrl-C stops and keeps what was measured."""
    from prony.app.api import Bench
    from prony.cli.progress import following
    from prony.recipe import load

    loaded = load(recipe, set_ or ())
    with Bench.open() as bench:
        with following() as follower:
            dossier = bench.run(loaded, on_start=follower.start, on_event=follower.event)
        return finish(bench, dossier, as_json=json, with_report=report)
