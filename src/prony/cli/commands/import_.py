"""`prony import`: store experiments that were measured elsewhere, here or on a server."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server
from prony.ports.plugins import IMPORTERS, find_plugins

if TYPE_CHECKING:
    from prony.model.experiment import Experiment


def arguments(parser: ArgumentParser) -> None:
    """Import results from elsewhere; checksums are verified and numbers are recomputed."""
    others = ", ".join(find_plugins(IMPORTERS))
    parser.add_argument(
        "path", type=Path,
        help=f"an exported folder, a result folder, or a results folder of {others}; with --server also an experiment "
        "of this machine",
    )  # fmt: skip
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text
    from prony.cli.remote import server_address

    experiments = _import_here(options.path) if server_address(options) is None else _send(options)
    if options.json:
        told = [{"id": one.id, "name": one.name, "state": one.state.value} for one in experiments]
        print_json(told[0] if len(told) == 1 else told)
    else:
        for one in experiments:
            print_text(f"imported {one.name} as {one.id}")
    return 0


def _import_here(path: Path) -> Sequence[Experiment]:
    from prony.app.bench import Bench
    from prony.app.interchange import bring_in

    with Bench.open() as bench:
        return bring_in(bench.store, path)


def _send(options: Namespace) -> Sequence[Experiment]:
    """Send folders of ours as they are; what another program wrote is read here, and sent as exports."""
    from prony.app.interchange import export_found
    from prony.cli.remote import connect_server

    with tempfile.TemporaryDirectory(prefix="prony-import-") as scratch, connect_server(options) as client:
        folders = export_found(options.path, Path(scratch))
        return [client.experiments.import_(folder).experiment for folder in folders]
