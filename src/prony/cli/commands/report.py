"""`prony report`: write the report of an experiment."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_experiment_argument, add_gates, add_server

if TYPE_CHECKING:
    from prony.ports.use_cases import UseCases

_PDF = "pdf"


def arguments(parser: ArgumentParser) -> None:
    """Write a report. HTML and PDF are written beside the results unless --out is given, other formats to standard
    output.

    PDF needs a browser on this machine: Chromium, Chrome or Edge on PATH, or the one in PRONY_BROWSER.
    """
    add_experiment_argument(parser)
    parser.add_argument(
        "--format", "-f", help="html, pdf, md, json, csv, junit or github (default: from the name of --out, else html)"
    )
    parser.add_argument("--out", "--output", "-o", type=Path, help="file to write; - for standard output")
    add_gates(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_note
    from prony.cli.remote import open_bench
    from prony.report import check_format

    wanted = (options.format or _by_name(options.out)).lower()
    if wanted == _PDF:
        from prony.report.pdf import find_browser

        find_browser()  # said before anything is gathered and drawn
    else:
        check_format(wanted, besides=(_PDF,))
    options.format = "html" if wanted == _PDF else wanted
    with open_bench(options) as bench:
        content = _write_report(bench, options)
    if wanted == _PDF:
        content = _print_pdf(content)
    if isinstance(content, Path):
        print_note(f"report: {content}")
        return 0
    if options.out is None or str(options.out) == "-":
        sys.stdout.buffer.write(content)
        return 0
    _write(options.out, content)
    print_note(f"report: {options.out}")
    return 0


def _by_name(out: Path | None) -> str:
    """Return the format that a file's name tells; HTML where there is no file to be named."""
    from prony.report import format_of_path

    if out is None or str(out) == "-" or (out.exists() and not out.is_file()):
        return "html"
    return _PDF if out.suffix.lower() == ".pdf" else format_of_path(out, besides=(".pdf",))


def _print_pdf(content: bytes | Path) -> bytes | Path:
    """Return the page as PDF, beside the page where that has a place of its own."""
    from prony.report.pdf import print_pdf

    if not isinstance(content, Path):
        return print_pdf(content)
    beside = content.with_suffix(".pdf")
    _write(beside, print_pdf(content.read_bytes()))
    return beside


def _write(path: Path, data: bytes) -> None:
    """Write the whole file or none: somebody may be looking at the earlier one."""
    if path.exists() and not path.is_file():  # a pipe or a terminal
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write_report(bench: UseCases, options: Namespace) -> bytes | Path:
    """Return the document, or where it lies where nobody said where to put it."""
    strict = options.gates == "strict"
    experiment_id = bench.experiments.find(options.experiment)
    if options.format == "html" and options.out is None:
        return bench.experiments.keep_report(experiment_id, strict=strict)
    return bench.experiments.report(experiment_id, options.format, strict=strict)
