"""`prony report`: an experiment in, a document out."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_experiment


def arguments(parser: ArgumentParser) -> None:
    """Write a report. HTML goes beside the results unless --out says otherwise, the rest to standard output."""
    add_experiment(parser)
    parser.add_argument("--format", "-f", default="html", help="html, md, json, csv or junit")
    parser.add_argument("--out", "-o", type=Path, help="file to write; - for standard output")


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.output import print_note

    with Bench.open() as bench:
        if options.format == "html" and options.out is None:
            print_note(f"report: {bench.write_report(bench.dossier(options.experiment))}")
            return 0
        content = bench.report(options.experiment, options.format)
    data = content if isinstance(content, bytes) else content.encode()
    if options.out is None or str(options.out) == "-":
        sys.stdout.buffer.write(data)
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(data)
    print_note(f"report: {options.out}")
    return 0
