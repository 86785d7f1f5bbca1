"""`prony engines`: this machine in, its engines with interpreter, version, units and precisions out; and adding one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from prony.model.device import EngineReport

command = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help="List the engines, or add one."
)


@command.callback(invoke_without_command=True)
def list_engines(
    context: typer.Context, json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False
) -> None:
    """Start every engine once and say what it can do here; broken ones with the reason."""
    if context.invoked_subcommand is not None:
        return
    from prony.app.api import Bench
    from prony.cli.output import print_json

    with Bench.open() as bench:
        reports = bench.engines()
    if json:
        print_json([report.model_dump(mode="json") for report in reports])
    else:
        show_engines(reports)


@command.command("add")
def add_engine(
    name: Annotated[str, typer.Argument(help="an engine, as prony engines lists it")],
    python: Annotated[str | None, typer.Option(help="use this interpreter instead of a new environment")] = None,
    package: Annotated[
        list[str] | None, typer.Option(help="install this instead of the usual, as onnxruntime==1.20.1")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> int:
    """Give an engine an environment of its own, so that its packages disturb nobody else's."""
    from prony.app.api import Bench
    from prony.cli.output import print_json, print_note

    with Bench.open() as bench:
        report = bench.add_engine(name, python=python, requirements=package or (), say=print_note)
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        show_engines([report])
    return 0 if report.state == "ready" else 1


def show_engines(reports: list[EngineReport]) -> None:
    """Print engines for a person; shared with the doctor."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("engine", "version", "unit", "precisions", "formats", "import", "interpreter"):
        table.add_column(head, overflow="fold")
    for report in reports:
        for row in _rows(report):
            table.add_row(*row)
    console = Console()
    console.print(table, highlight=False)
    for report in reports:
        if report.state != "ready":
            hint = f"  [dim]→ {report.hint}[/dim]" if report.hint else ""
            console.print(f"[bold]{report.name}[/bold] is {report.state}: {report.reason}{hint}", highlight=False)


def _rows(report: EngineReport) -> list[tuple[str, ...]]:
    formats = " ".join(report.formats)
    if report.state != "ready":
        return [(report.name, f"[dim]{report.state}[/dim]", "", "", formats, "", report.python)]
    units = report.units or ()
    first = [report.name, report.version or "", "", "", formats, f"{report.import_ms or 0:.0f} ms", report.python]
    rows = []
    for unit in units:
        first[2], first[3] = unit.unit, " ".join(unit.precisions)
        rows.append(tuple(first))
        first = [""] * 7
    return rows
