"""`prony export`: copy an experiment to a folder that can be imported elsewhere."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_experiment_argument, add_server
from prony.ports.plugins import EXPORTERS, find_plugins


def arguments(parser: ArgumentParser) -> None:
    """Copy an experiment with its recipe, results and checksums; `prony import` loads it on any machine."""
    add_experiment_argument(parser, required=True)
    parser.add_argument("--to", type=Path, required=True, help="folder to create")
    formats = ("requests-jsonl", "csv", "hdr", "mlperf", *find_plugins(EXPORTERS))
    parser.add_argument(
        "--format", default="folder", metavar="FORMAT",
        help=f"folder: everything. Requests of a load: {', '.join(formats[:-1])} or {formats[-1]} (folder)",
    )  # fmt: skip
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that exists, if it is an export")
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_note
    from prony.cli.remote import open_bench

    with open_bench(options) as bench:
        experiment_id = bench.experiments.find(options.experiment)
        if options.format == "folder":
            made = bench.experiments.export(experiment_id, options.to, overwrite=options.overwrite)
            print_note(f"exported to {made}")
            return 0
        for path in bench.experiments.export_requests(experiment_id, options.format, options.to):
            print_note(f"wrote {path}")
    return 0
