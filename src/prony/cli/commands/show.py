"""`prony show`: an experiment in, its numbers on the terminal out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment, add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Show one experiment's numbers, each with its interval and verdict."""
    add_experiment(parser)
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.outcome import show
    from prony.cli.remote import address, connect

    if address(options):
        from prony.client.names import experiment_named

        with connect(options) as client:
            dossier = client.results(experiment_named(client, options.experiment))
        show(dossier, as_json=options.json)
        return 0

    from prony.app.api import Bench

    with Bench.open() as bench:
        show(bench.dossier(options.experiment), as_json=options.json)
    return 0
