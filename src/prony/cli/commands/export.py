"""`prony export`: an experiment in, a folder that can be carried elsewhere out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_experiment


def arguments(parser: ArgumentParser) -> None:
    """Copy an experiment with its recipe, results and checksums; `prony import` brings it back anywhere."""
    add_experiment(parser, required=True)
    parser.add_argument("--to", type=Path, required=True, help="folder to make")
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that exists")


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.output import print_note

    with Bench.open() as bench:
        print_note(f"exported to {bench.export(options.experiment, options.to, overwrite=options.overwrite)}")
    return 0
