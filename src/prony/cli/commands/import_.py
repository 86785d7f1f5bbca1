"""`prony import`: an exported experiment or a result folder in, a stored experiment out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """Bring in results made elsewhere; their checksums are verified and their numbers computed again."""
    parser.add_argument("path", type=Path, help="an exported folder, or one result folder")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.output import print_json, print_text

    with Bench.open() as bench:
        experiment = bench.import_(options.path)
    if options.json:
        print_json({"id": experiment.id, "name": experiment.name, "state": experiment.state.value})
    else:
        print_text(f"imported {experiment.name} as {experiment.id}")
    return 0
