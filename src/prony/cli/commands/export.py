"""`prony export`: copy an experiment to a folder that can be imported elsewhere."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_experiment_argument, add_server
from prony.ports.plugins import DESTINATIONS, EXPORTERS, find_plugins

if TYPE_CHECKING:
    from prony.ports.use_cases import UseCases


def arguments(parser: ArgumentParser) -> None:
    """Copy an experiment with its recipe, results and checksums; `prony import` loads it on any machine. With the name
    of another program, send its results and logs there."""
    add_experiment_argument(parser, required=True)
    names = ", ".join(find_plugins(DESTINATIONS))
    parser.add_argument(
        "--to",
        required=True,
        metavar="PLACE",
        help=f"folder to create; or a program: {names}, as mlflow+http://HOST:PORT",
    )
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

    address = _address(options)
    with open_bench(options) as bench:
        experiment_id = bench.experiments.find(options.experiment)
        if address is not None:
            print_note(f"sent to {_send(bench, experiment_id, address)}")
            return 0
        to = Path(options.to)
        if options.format == "folder":
            made = bench.experiments.export(experiment_id, to, overwrite=options.overwrite)
            print_note(f"exported to {made}")
            return 0
        for path in bench.experiments.export_requests(experiment_id, options.format, to):
            print_note(f"wrote {path}")
    return 0


def _address(options: Namespace) -> str | None:
    """Return the address of the program that is meant; None where it is a folder."""
    import os

    from prony.app.destinations import EXPORT_TO, find_address, read_addresses
    from prony.errors import InputError

    address = find_address(options.to, read_addresses(os.environ.get(EXPORT_TO, "")))
    if address is not None and (options.format != "folder" or options.overwrite):
        hint = "leave out --format and --overwrite; what was sent before is replaced"
        raise InputError("--format and --overwrite are for folders", hint=hint)
    return address


def _send(bench: UseCases, experiment_id: str, address: str) -> str:
    from prony.app.destinations import send_experiment
    from prony.errors import ConflictError
    from prony.model.states import OVER

    data = bench.experiments.results(experiment_id)
    if data.experiment.state not in OVER:
        raise ConflictError(f"experiment {experiment_id} is {data.experiment.state}", hint="wait for it, or stop it")
    return send_experiment(address, data, lambda job_id, name, offset: bench.files.text(job_id, name, offset=offset))
