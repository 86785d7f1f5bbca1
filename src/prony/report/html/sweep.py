"""Render a sweep as an HTML page or a part of one: claims, levels, plot and evidence."""

from __future__ import annotations

from prony.model.sweep import Curve, Level, SweepReport, format_levels
from prony.report import sweep_tables
from prony.report.html.tags import Html, add_caption, fold, grid, html_page, section, tag
from prony.report.plots.sweep import against_load

_ABOUT = (
    "Points are levels, bars their intervals; a hollow point is not used for any conclusion. The "
    "horizontal band is the highest throughput, the vertical band is the knee."
)


def render(report: SweepReport) -> str:
    """Return a whole page that refers to nothing outside itself."""
    told = [tag("li", tag("b", f"{_name_curve(curve, name)}: "), claim.text)
            for curve in report.curves for name, claim in sweep_tables.claims(curve)]  # fmt: skip
    body = (
        section("found", "What was found", tag("ul", *told, class_="found")),
        section("levels", "Levels", *sweep_blocks(report, claims=False)),
        section("method", "Method", tag("p", sweep_tables.method(report))),
    )
    meta = f"experiments {', '.join(report.experiments)}"
    return html_page("Load sweep", "Prony sweep report", meta, *body)


def sweep_blocks(report: SweepReport, *, claims: bool = True) -> list[Html | None]:
    """Return the table, the drawing and the evidence of each curve, and with `claims` what is claimed."""
    blocks: list[Html | None] = []
    for place, curve in enumerate(report.curves):
        heads = sweep_tables.headings(curve)
        rows = [list(line.cells) for line in sweep_tables.lines(curve)]
        words = [heads.index(word) for word in ("SLO", "limited by", "verdict") if word in heads]
        blocks.append(tag("h3", "Throughput against load", f": {curve.title}" if curve.title else None))
        if claims:
            told = [tag("li", tag("b", f"{name}: "), claim.text) for name, claim in sweep_tables.claims(curve)]
            blocks.append(tag("ul", *told, class_="found"))
        blocks.append(grid(heads, rows, numeric=[n for n in range(len(heads)) if n not in words]))
        drawing = against_load(curve, str(place))
        if drawing is not None:
            blocks.append(add_caption("Against load.", _ABOUT, drawing))
        evidence = [_evidence(curve, level) for level in curve.levels]
        blocks.append(fold("Bottleneck of each level, with the data behind it", *evidence))
    return blocks


def _name_curve(curve: Curve, name: str) -> str:
    return f"{name} ({curve.title})" if curve.title else name


def _evidence(curve: Curve, level: Level) -> Html:
    found = level.bottleneck
    head = tag("h4", format_levels([level.load], curve.noun))
    if found is None:
        return tag("div", head, tag("p", "No other data were recorded."))
    rows = [[clue.side, clue.text, "over" if clue.is_over else ""] for clue in found.clues]
    return tag("div", head, tag("p", found.text), grid(["side", "series", ""], rows) if rows else None)
