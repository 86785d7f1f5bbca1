"""`prony rerun`: an earlier experiment in, the same recipe run again out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment, add_json, add_report


def arguments(parser: ArgumentParser) -> None:
    """Run an earlier experiment's recipe again, with the overrides it had."""
    add_experiment(parser, required=True)
    add_json(parser)
    add_report(parser)


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.outcome import finish
    from prony.cli.progress import following

    with Bench.open() as bench:
        with following() as follower:
            dossier = bench.rerun(options.experiment, on_start=follower.start, on_event=follower.event)
        return finish(bench, dossier, as_json=options.json, with_report=options.report)
