"""`prony export`: an experiment in, a folder that can be carried elsewhere out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_experiment, add_server
from prony.ports.plugins import EXPORTERS, find_plugins


def arguments(parser: ArgumentParser) -> None:
    """Copy an experiment with its recipe, results and checksums; `prony import` brings it back anywhere."""
    add_experiment(parser, required=True)
    parser.add_argument("--to", type=Path, required=True, help="folder to make")
    formats = ("requests-jsonl", "csv", "hdr", "mlperf", *find_plugins(EXPORTERS))
    parser.add_argument(
        "--format", default="folder", metavar="FORMAT",
        help=f"folder (all of it), or of a load's requests: {', '.join(formats[:-1])} or {formats[-1]}",
    )  # fmt: skip
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that exists")
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_note
    from prony.cli.remote import address

    if options.format != "folder":
        for path in _requests(options):
            print_note(f"wrote {path}")
        return 0
    made = _from_there(options) if address(options) else _from_here(options)
    print_note(f"exported to {made}")
    return 0


def _requests(options: Namespace) -> tuple[Path, ...]:
    """Write the requests of a load in another program's format."""
    from prony.app.api import Bench
    from prony.cli.remote import address

    if address(options):
        return _requests_there(options)
    with Bench.open() as bench:
        return bench.export_requests(options.experiment, options.format, options.to)


def _requests_there(options: Namespace) -> tuple[Path, ...]:
    """Take the experiment along into a home that is gone afterwards, and write its requests as from any home."""
    import tempfile

    from prony.app.api import Bench
    from prony.report.exports.formats import check_format
    from prony.store.home import Home

    check_format(options.format)
    with tempfile.TemporaryDirectory(prefix="prony-export-") as scratch:
        carried = Namespace(**{**vars(options), "to": Path(scratch) / "export", "overwrite": False})
        folder = _from_there(carried)
        with Bench.open(Home(Path(scratch) / "home")) as bench:
            return bench.export_requests(bench.import_(folder).id, options.format, options.to)


def _from_here(options: Namespace) -> Path:
    from prony.app.api import Bench

    with Bench.open() as bench:
        return bench.export(options.experiment, options.to, overwrite=options.overwrite)


def _from_there(options: Namespace) -> Path:
    from prony.cli.remote import connect
    from prony.client.download_experiment import carry_export
    from prony.client.resolve_id import experiment_named

    with connect(options) as client:
        experiment_id = experiment_named(client, options.experiment)
        return carry_export(client, experiment_id, options.to, overwrite=options.overwrite)
