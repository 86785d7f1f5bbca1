"""`prony report`: an experiment in, a document out."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_experiment, add_gates, add_server

_PDF = "pdf"


def arguments(parser: ArgumentParser) -> None:
    """Write a report. HTML and PDF go beside the results unless --out says otherwise, the rest to standard output.

    PDF is printed by a browser on this machine: a Chromium, Chrome or Edge on PATH, or what PRONY_BROWSER names.
    """
    add_experiment(parser)
    parser.add_argument(
        "--format", "-f", help="html (default, or by --out's name), pdf, md, json, csv, junit or github"
    )
    parser.add_argument("--out", "--output", "-o", type=Path, help="file to write; - for standard output")
    add_gates(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_note
    from prony.cli.remote import address

    wanted = (options.format or _by_name(options.out)).lower()
    if wanted == _PDF:
        from prony.report.pdf import find_browser

        find_browser()  # said before anything is gathered and drawn
    options.format = "html" if wanted == _PDF else wanted
    content = _from_there(options) if address(options) else _from_here(options)
    if wanted == _PDF:
        content = _print_pdf(content)
    if isinstance(content, Path):
        print_note(f"report: {content}")
        return 0
    data = content if isinstance(content, bytes) else content.encode()
    if options.out is None or str(options.out) == "-":
        sys.stdout.buffer.write(data)
        return 0
    _write(options.out, data)
    print_note(f"report: {options.out}")
    return 0


def _by_name(out: Path | None) -> str:
    """Return the format that a file's name tells; HTML of a name that tells none."""
    suffixes = {".pdf": _PDF, ".md": "md", ".json": "json", ".csv": "csv"}
    return suffixes.get(out.suffix.lower(), "html") if out is not None else "html"


def _print_pdf(content: str | bytes | Path) -> bytes | Path:
    """Return the page as PDF, beside the page where that has a place of its own."""
    from prony.report.pdf import print_pdf

    if not isinstance(content, Path):
        return print_pdf(content if isinstance(content, bytes) else content.encode())
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


def _from_here(options: Namespace) -> str | bytes | Path:
    """Return the document, or where it lies where nobody said where to put it."""
    from prony.app.api import Bench

    with Bench.open() as bench:
        if options.format == "html" and options.out is None:
            return bench.write_report(bench.dossier(options.experiment), strict=_is_strict(options))
        return bench.report(options.experiment, options.format, strict=_is_strict(options))


def _is_strict(options: Namespace) -> bool:
    return bool(options.gates == "strict")


def _from_there(options: Namespace) -> str | bytes | Path:
    from prony.cli.remote import connect, keep_report
    from prony.client.resolve_id import experiment_named

    with connect(options) as client:
        experiment_id = experiment_named(client, options.experiment)
        document = client.report(experiment_id, options.format, strict=_is_strict(options))
    is_kept = options.format == "html" and options.out is None
    return keep_report(experiment_id, document) if is_kept else document
