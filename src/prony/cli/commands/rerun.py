"""`prony rerun`: an earlier experiment in, the same recipe run again out."""

from __future__ import annotations

from typing import Annotated

import typer

from prony.cli.outcome import finish


def command(
    experiment: Annotated[str, typer.Argument(help="an id, the beginning of one, or last")],
    json: Annotated[bool, typer.Option("--json", help="print the results as JSON")] = False,
    report: Annotated[bool, typer.Option(help="write an HTML report beside the results")] = True,
) -> int:
    """Run an earlier experiment's recipe again, with the overrides it had."""
    from prony.app.api import Bench
    from prony.cli.progress import following

    with Bench.open() as bench:
        with following() as follower:
            dossier = bench.rerun(experiment, on_start=follower.start, on_event=follower.event)
        return finish(bench, dossier, as_json=json, with_report=report)
