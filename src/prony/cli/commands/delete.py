"""`prony delete`: an experiment in, nothing of it left out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment, add_json


def arguments(parser: ArgumentParser) -> None:
    """Delete an experiment and its result folders. Model files are never touched."""
    add_experiment(parser, required=True)
    parser.add_argument("--force", action="store_true", help="also one that is marked as running")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.output import print_json, print_text

    with Bench.open() as bench:
        deleted = bench.delete(options.experiment, force=options.force)
    if options.json:
        print_json({"deleted": deleted})
    else:
        print_text(f"deleted {deleted}")
    return 0
