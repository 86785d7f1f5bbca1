"""Render a sweep as Markdown: claims, levels and what limited each of them."""

from __future__ import annotations

from prony.model.sweep import SweepReport, format_levels
from prony.report import sweep_tables
from prony.report.load_tables import FigureLine
from prony.report.markdown.text import escape_markdown, grid


def render(report: SweepReport) -> str:
    """Return a document of its own."""
    lines = ["# Load sweep", "", escape_markdown(f"experiments {', '.join(report.experiments)}"), ""]
    return "\n".join([*lines, *sweep_lines(report)]) + "\n"


def sweep_lines(report: SweepReport) -> list[str]:
    """Return the part of a document that tells of a sweep."""
    lines: list[str] = []
    for curve in report.curves:
        lines += [f"## Throughput against load{escape_markdown(f': {curve.title}') if curve.title else ''}", ""]
        lines += [f"- **{name}**: {escape_markdown(claim.text)}" for name, claim in sweep_tables.claims(curve)]
        lines += ["", *grid(sweep_tables.headings(curve), [_row(line) for line in sweep_tables.lines(curve)])]
        told = [(level.load, level.bottleneck) for level in curve.levels]
        lines += [
            f"- {escape_markdown(format_levels([load], curve.noun))}: {escape_markdown(one.text)}"
            for load, one in told
            if one is not None
        ]
        lines += [""]
    return lines


def _row(line: FigureLine) -> FigureLine:
    return FigureLine(line.cells[0], line.cells[1:])
