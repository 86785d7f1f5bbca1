"""A sweep in, Markdown out: what is claimed, the table of levels, and what limited each."""

from __future__ import annotations

from prony.model.sweep import SweepReport
from prony.report import sweep_tables
from prony.report.load_tables import Line
from prony.report.markdown_text import escaped, grid


def render(report: SweepReport) -> str:
    """Return a document of its own."""
    lines = ["# Load sweep", "", escaped(f"experiments {', '.join(report.experiments)}"), ""]
    return "\n".join([*lines, *sweep_lines(report)]) + "\n"


def sweep_lines(report: SweepReport) -> list[str]:
    """Return the part of a document that tells of a sweep."""
    lines: list[str] = []
    for curve in report.curves:
        lines += [f"## Throughput against load{escaped(f': {curve.title}') if curve.title else ''}", ""]
        lines += [f"- **{name}**: {escaped(claim.text)}" for name, claim in sweep_tables.claims(curve)]
        lines += ["", *grid(sweep_tables.headings(curve), [_row(line) for line in sweep_tables.lines(curve)])]
        told = [(level.load, level.bottleneck) for level in curve.levels]
        lines += [f"- {load:g} {escaped(curve.noun)}: {escaped(one.text)}" for load, one in told if one is not None]
        lines += [""]
    return lines


def _row(line: Line) -> Line:
    return Line(line.cells[0], line.cells[1:])
