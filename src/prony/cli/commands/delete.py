"""`prony delete`: an experiment in, nothing of it left out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment, add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Delete an experiment and its result folders. Model files are never touched."""
    add_experiment(parser, required=True)
    parser.add_argument("--force", action="store_true", help="also one that is marked as running")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_answer
    from prony.cli.remote import address

    deleted = _there(options) if address(options) else _here(options)
    return print_answer({"deleted": deleted}, f"deleted {deleted}", as_json=options.json)


def _here(options: Namespace) -> str:
    from prony.app.api import Bench

    with Bench.open() as bench:
        return bench.delete(options.experiment, force=options.force)


def _there(options: Namespace) -> str:
    from prony.cli.remote import connect
    from prony.client.resolve_id import experiment_named

    with connect(options) as client:
        experiment_id = experiment_named(client, options.experiment)
        client.delete(experiment_id, force=options.force)
    return experiment_id
