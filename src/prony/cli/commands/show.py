"""`prony show`: an experiment in, its numbers on the terminal out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment, add_json


def arguments(parser: ArgumentParser) -> None:
    """Show one experiment's numbers, each with its interval and verdict."""
    add_experiment(parser)
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.outcome import show

    with Bench.open() as bench:
        show(bench.dossier(options.experiment), as_json=options.json)
    return 0
