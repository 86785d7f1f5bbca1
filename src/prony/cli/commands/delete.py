"""`prony delete`: delete an experiment and its result folders."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment_argument, add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Delete an experiment and its result folders. Model files are never touched."""
    add_experiment_argument(parser, required=True)
    parser.add_argument("--force", action="store_true", help="delete it even if it is marked as running")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_answer
    from prony.cli.remote import open_bench

    with open_bench(options) as bench:
        deleted = bench.experiments.find(options.experiment)
        bench.experiments.delete(deleted, force=options.force)
    return print_answer({"deleted": deleted}, f"deleted {deleted}", as_json=options.json)
