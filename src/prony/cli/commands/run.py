"""`prony run`: a recipe in, numbers and a report out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_json, add_report


def arguments(parser: ArgumentParser) -> None:
    """Run a recipe on this machine. Ctrl-C stops and keeps what was measured."""
    parser.add_argument("recipe", type=Path, help="a recipe: .yaml, .toml or .json")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="override one key; repeatable")
    add_json(parser)
    add_report(parser)


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.outcome import finish
    from prony.cli.progress import following
    from prony.recipe import load

    loaded = load(options.recipe, options.set)
    with Bench.open() as bench:
        with following() as follower:
            dossier = bench.run(loaded, on_start=follower.start, on_event=follower.event)
        return finish(bench, dossier, as_json=options.json, with_report=options.report)
