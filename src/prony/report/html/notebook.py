"""Show results in a notebook: a small table and a small plot, with no style sheet and no drawing library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prony.model.estimate import Estimate, headline_of
from prony.model.experiment_data import ExperimentData
from prony.report import entry_fields
from prony.report.html.tags import Child, Html, grid, join_html, tag
from prony.report.notes import notes
from prony.report.number import format_number, format_observed, interval_of
from prony.report.table import table

_WIDTH, _ROW, _LEFT, _RIGHT, _AXIS = 640, 36, 160, 20, 22
_MOST_DOTS = 200
_COLOUR = "#0072b2"
Place = Callable[[float], float]


@dataclass(frozen=True)
class PlotRow:
    """One row of the plot: values in the unit of their estimate."""

    name: str
    values: Sequence[float]
    estimate: Estimate


def render_experiment(data: ExperimentData) -> str:
    """Return the table of an experiment, its notes, and the headline numbers of its runs as a plot."""
    shown = table(data)
    heads = [f"{one.heading} {one.unit}".strip() for one in shown.columns]
    rows: list[list[Child]] = [
        [" ".join(filter(None, (row.cells[one.key].text, row.cells[one.key].interval))) for one in shown.columns]
        for row in shown.rows
    ]
    title = tag("p", tag("b", data.experiment.name), f" {data.experiment.id} {data.experiment.state}")
    remarks = tag("ul", *(tag("li", one.text) for one in notes(data)))
    return join_html((title, grid(heads, rows), draw_values(_headline_rows(data)), remarks))


def render_calls(row: PlotRow, facts: Sequence[tuple[str, str]], sentences: Sequence[str]) -> str:
    """Return what one process showed of a function: its median, facts about the calls, and all of them as a plot."""
    rows: list[list[Child]] = [[tag("b", "median"), tag("b", format_number(row.estimate))]]
    rows += [[name, text] for name, text in facts]
    remarks = tag("ul", *(tag("li", text) for text in sentences))
    return join_html((tag("p", tag("b", row.name)), grid(("", ""), rows), draw_values([row]), remarks))


def draw_values(rows: Sequence[PlotRow]) -> Html | None:
    """Draw a row of dots for each, its interval as a bar and its median as a stroke; None where there is nothing."""
    shown = [row for row in rows if len(row.values)]
    if not shown:
        return None
    # The slowest calls would squeeze all others into a corner: the axis ends at the 99th percentile of each row.
    low = min(min(row.values) for row in shown)
    high = max(float(np.quantile(np.asarray(row.values), 0.99)) for row in shown)
    high = max([high, *(ends[1] for row in shown if (ends := interval_of(row.estimate)))])
    height = _ROW * len(shown) + _AXIS
    span = high - low or abs(high) or 1.0

    def place(value: float) -> float:
        return _LEFT + (min(value, high) - low) / span * (_WIDTH - _LEFT - _RIGHT)

    parts = [part for at, row in enumerate(shown) for part in _draw_row(row, _ROW * at + _ROW / 2, place)]
    unit = shown[0].estimate.unit
    for value, anchor in ((low, "start"), (high, "end")):
        parts.append(_text(format_observed(value, unit), place(value), height - 6, anchor))
    return tag("svg", *parts, width=str(_WIDTH), height=str(height), role="img", aria_label="values and intervals")


def _draw_row(row: PlotRow, y: float, place: Place) -> list[Html]:
    ordered = np.sort(np.asarray(row.values, dtype=np.float64))
    chosen = ordered[np.linspace(0, ordered.size - 1, min(_MOST_DOTS, ordered.size)).astype(int)]
    dots = [
        tag("circle", cx=f"{place(float(value)):.1f}", cy=f"{y - 6 + 3 * (at % 3 - 1):.1f}", r="1.6", fill=_COLOUR,
            fill_opacity="0.45")
        for at, value in enumerate(chosen)
    ]  # fmt: skip
    ends = interval_of(row.estimate)
    middle = place(row.estimate.value)
    low = y + 8  # the interval stands below the values, which it would hide
    bar = [] if ends is None else [_line(place(ends[0]), low, place(ends[1]), low, "3")]
    return [_text(row.name[:24], 4, y + 4, "start"), *dots, *bar, _line(middle, low - 5, middle, low + 5, "2")]


def _line(x1: float, y1: float, x2: float, y2: float, width: str) -> Html:
    ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
    return tag("line", stroke="#d55e00", stroke_width=width, **ends)


def _text(text: str, x: float, y: float, anchor: str) -> Html:
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, font_size="11", fill="currentColor")


def _headline_rows(data: ExperimentData) -> list[PlotRow]:
    found = []
    for entry in data.entries:
        key = headline_of(entry.summary, entry.job.workload.kind) or ""
        if key in entry.summary.estimates:
            values = entry.summary.runs.get(key, ())
            found.append(PlotRow(entry_fields.label(entry), values, entry.summary.estimates[key]))
    return found
