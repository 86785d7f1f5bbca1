"""`prony import`: store experiments that were measured elsewhere."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_json
from prony.ports.plugins import IMPORTERS, find_plugins


def arguments(parser: ArgumentParser) -> None:
    """Bring in results made elsewhere; their checksums are verified and their numbers computed again."""
    others = ", ".join(find_plugins(IMPORTERS))
    parser.add_argument("path", type=Path, help=f"an exported folder, a result folder, or a results folder of {others}")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.bench import Bench
    from prony.app.interchange import bring_in
    from prony.cli.output import print_json, print_text

    with Bench.open() as bench:
        experiments = bring_in(bench.store, options.path)
    if options.json:
        told = [{"id": one.id, "name": one.name, "state": one.state.value} for one in experiments]
        print_json(told[0] if len(told) == 1 else told)
    else:
        for one in experiments:
            print_text(f"imported {one.name} as {one.id}")
    return 0
