"""A document in, where it was asked for out: a file, standard output, or for HTML a place in the home."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.output import print_note

FORMATS = ("table", "html", "markdown", "json")


def add_format(parser: ArgumentParser) -> None:
    parser.add_argument("--format", "-f", choices=FORMATS, default="table", help="table, html, markdown or json")
    parser.add_argument("--out", "-o", type=Path, help="file to write; - for standard output")


def format_of(options: Namespace) -> str:
    """Return the format; --json is the short word for one of them."""
    return "json" if options.json else str(options.format)


def write_document(document: str, options: Namespace, name: str) -> None:
    """Write it; HTML that nobody said where to put lies in the home, because a terminal shows it badly."""
    out: Path | None = options.out
    if out is None and format_of(options) == "html":
        from prony.cli.remote import keep_report

        print_note(f"report: {keep_report(name, document.encode())}")
        return
    if out is None or str(out) == "-":
        sys.stdout.write(document)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(document, encoding="utf-8")
    print_note(f"report: {out}")
