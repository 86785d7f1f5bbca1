"""`prony report`: an experiment in, a document out."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_experiment, add_server


def arguments(parser: ArgumentParser) -> None:
    """Write a report. HTML goes beside the results unless --out says otherwise, the rest to standard output."""
    add_experiment(parser)
    parser.add_argument("--format", "-f", default="html", help="html, md, json, csv, junit or github")
    parser.add_argument("--out", "-o", type=Path, help="file to write; - for standard output")
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_note
    from prony.cli.remote import address

    content = _from_there(options) if address(options) else _from_here(options)
    if isinstance(content, Path):
        print_note(f"report: {content}")
        return 0
    data = content if isinstance(content, bytes) else content.encode()
    if options.out is None or str(options.out) == "-":
        sys.stdout.buffer.write(data)
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(data)
    print_note(f"report: {options.out}")
    return 0


def _from_here(options: Namespace) -> str | bytes | Path:
    """Return the document, or where it lies where nobody said where to put it."""
    from prony.app.api import Bench

    with Bench.open() as bench:
        if options.format == "html" and options.out is None:
            return bench.write_report(bench.dossier(options.experiment))
        return bench.report(options.experiment, options.format)


def _from_there(options: Namespace) -> str | bytes | Path:
    from prony.cli.remote import connect, keep_report
    from prony.client.names import experiment_named

    with connect(options) as client:
        experiment_id = experiment_named(client, options.experiment)
        document = client.report(experiment_id, options.format)
    is_kept = options.format == "html" and options.out is None
    return keep_report(experiment_id, document) if is_kept else document
