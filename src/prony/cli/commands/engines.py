"""`prony engines`: list this machine's engines with interpreter, version, units and precisions; or add one."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json

if TYPE_CHECKING:
    from prony.model.device import EngineReport

_THIS = "this one"


def arguments(parser: ArgumentParser) -> None:
    """Start every engine once and show what it can do here, or why it is broken; or add one."""
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    adding = actions.add_parser("add", help="install an engine in its own environment")
    adding.add_argument("name", help="an engine from `prony engines`, or its build for GPUs")
    adding.add_argument("--python", metavar="PATH", help="use this interpreter instead of a new environment")
    adding.add_argument(
        "--version",
        metavar="V",
        help="add this version beside the usual one, for jobs with engine_version: 1.20, 1.20.1",
    )
    adding.add_argument(
        "--package", action="append", default=[],
        help="install this package instead, for example onnxruntime==1.20.1; repeatable",
    )  # fmt: skip
    add_json(adding)


def command(options: Namespace) -> int:
    from prony.app.bench import Bench
    from prony.cli.output import print_json, print_note

    adding = options.action == "add"
    with Bench.open() as bench:
        if adding:
            wanted = {"version": options.version, "python": options.python, "requirements": options.package}
            reports = [bench.add_engine(options.name, **wanted, say=print_note)]
        else:
            reports = [*bench.engines(), *bench.engine_versions()]
    if options.json:
        print_json([report.model_dump(mode="json") for report in reports])
    else:
        show_engines(reports)
    return 1 if adding and reports[0].state != "ready" else 0


def show_engines(reports: list[EngineReport]) -> None:
    """Print engines for a person; shared with the doctor."""
    from rich.markup import escape
    from rich.table import Table

    from prony.cli.output import terminal

    ready = [report for report in reports if report.state == "ready"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("engine", "version", "unit", "precisions", "formats", "import", "interpreter"):
        table.add_column(head, overflow="fold", no_wrap=head in ("engine", "version", "unit", "import"))
    for report in ready:
        for row in _rows(report):
            table.add_row(*map(escape, row))
    console = terminal()
    if ready:
        console.print(table, highlight=False)
    for report in reports:
        if report.state != "ready":
            # The terminal wraps these lines, so that a command can be copied whole.
            place = "" if _place(report) == _THIS else f"; interpreter: {_place(report)}"
            about = escape(" ".join(report.formats) + place)
            line = f"[bold]{report.name}[/bold] ({about}) is {report.state}: {escape(report.reason)}"
            hint = f"\n  [dim]{escape(report.hint)}[/dim]" if report.hint else ""
            console.print(line + hint, highlight=False, soft_wrap=True)


def _place(report: EngineReport) -> str:
    """Return the interpreter in a few letters where it is one of ours; a path where a person chose it."""
    from prony.store.home import home

    if report.python == sys.executable:
        return _THIS
    return "its own" if Path(report.python).is_relative_to(home().engines) else report.python


def _rows(report: EngineReport) -> list[tuple[str, ...]]:
    # A vendor's version may carry a whole build description; its first word is the version.
    version = (report.version or "").split("-")[0]
    formats = " ".join(report.formats)
    first = [report.name, version, "", "", formats, f"{report.import_ms or 0:.0f} ms", _place(report)]
    rows = []
    for unit in report.units:
        first[2], first[3] = unit.unit, " ".join(unit.precisions)
        rows.append(tuple(first))
        first = [""] * 7
    return rows
