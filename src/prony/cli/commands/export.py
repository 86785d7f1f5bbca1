"""`prony export`: an experiment in, a folder that can be carried elsewhere out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_experiment, add_server


def arguments(parser: ArgumentParser) -> None:
    """Copy an experiment with its recipe, results and checksums; `prony import` brings it back anywhere."""
    add_experiment(parser, required=True)
    parser.add_argument("--to", type=Path, required=True, help="folder to make")
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that exists")
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_note
    from prony.cli.remote import address

    made = _from_there(options) if address(options) else _from_here(options)
    print_note(f"exported to {made}")
    return 0


def _from_here(options: Namespace) -> Path:
    from prony.app.api import Bench

    with Bench.open() as bench:
        return bench.export(options.experiment, options.to, overwrite=options.overwrite)


def _from_there(options: Namespace) -> Path:
    from prony.cli.remote import connect
    from prony.client.carrying import carry_export
    from prony.client.names import experiment_named

    with connect(options) as client:
        experiment_id = experiment_named(client, options.experiment)
        return carry_export(client, experiment_id, options.to, overwrite=options.overwrite)
