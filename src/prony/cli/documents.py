"""Write a report or comparison where it was asked for: to a file, to standard output or, for HTML, into the home."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from prony.cli.output import print_json, print_note, print_text, terminal

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from prony.model.comparison import Comparison, Terms


FORMATS = ("table", "html", "md", "json")
_SUFFIXES = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}
R = TypeVar("R", bound="BaseModel")


@dataclass(frozen=True)
class Faces(Generic[R]):
    """What a report looks like to people: on the terminal, as a page, and as Markdown."""

    table: Callable[[R, Console], None]
    html: Callable[[R], str]
    md: Callable[[R], str]


def add_format(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--format", "-f", choices=FORMATS, type=lambda word: "md" if word == "markdown" else word,
        help="table (default, or by --out's name), html, md or json",
    )  # fmt: skip
    parser.add_argument("--out", "-o", type=Path, help="file to write; - for standard output")


def _format_of(options: Namespace) -> str:
    """Return the format: as it was asked for, or as the name of the file tells; a table has no file."""
    if options.json:
        return "json"
    by_name = "table" if options.out is None else _SUFFIXES.get(options.out.suffix.lower(), "md")
    return str(options.format or by_name)


def show_document(found: R, options: Namespace, name: str, faces: Faces[R]) -> int:
    """Print it, or write it where it is asked for."""
    form = _format_of(options)
    if form == "table" and options.out is None:
        faces.table(found, terminal())
    elif form == "json":
        _write(found.model_dump_json(indent=1) + "\n", options, name)
    else:
        _write(faces.html(found) if form == "html" else faces.md(found), options, name)
    return 0


def _write(document: str, options: Namespace, name: str) -> None:
    """Write it; HTML that nobody said where to put lies in the home, because a terminal shows it badly."""
    out: Path | None = options.out
    if out is None and _format_of(options) == "html":
        from prony.client.transfer_experiment import keep_report

        print_note(f"report: {keep_report(name, document.encode())}")
        return
    if out is None or str(out) == "-":
        sys.stdout.write(document)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(document, encoding="utf-8")
    print_note(f"report: {out}")


def show_comparison(found: Comparison, *, as_json: bool, markdown: bool = False) -> None:
    """Print it for a person, or as JSON, or as Markdown."""
    if as_json:
        print_json(found.model_dump(mode="json"))
    elif markdown:
        from prony.report.markdown import comparison

        print_text(comparison.render(found))
    else:
        from prony.report.terminal import comparison as comparison_terminal

        comparison_terminal.print_comparison(found, terminal())


def terms_of(options: Namespace) -> Terms:
    from pydantic import ValidationError

    from prony.errors import InputError
    from prony.model.comparison import Terms
    from prony.model.validation_words import describe_invalid_value

    try:
        return Terms.read(
            {"threshold": options.threshold, "metrics": tuple(options.metric)}
            | {name: vars(options)[name] for name in ("anyway", "rule") if name in options}
            | {"across": tuple(vars(options).get("across", ()))}
        )
    except ValidationError as exc:
        raise InputError(
            f"--threshold: {describe_invalid_value(exc.errors()[0])}", hint="for example --threshold 3%"
        ) from None
