"""`prony show`: an experiment in, its numbers on the terminal out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment, add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Show one experiment's numbers, each with its interval and verdict. Exits 3 where samples are damaged."""
    add_experiment(parser)
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.finish_run import show
    from prony.cli.remote import address, connect

    if address(options):
        from prony.client.resolve_id import experiment_named

        with connect(options) as client:
            dossier = client.results(experiment_named(client, options.experiment))
        show(dossier, as_json=options.json)
        return 0

    from prony.app.api import Bench
    from prony.app.damages import damages_of
    from prony.cli.damages import report_damages

    with Bench.open() as bench:
        dossier = bench.dossier(options.experiment)
        show(dossier, as_json=options.json)
        return report_damages(damages_of(bench.store, dossier.experiment.id))
