"""Show a history as text for the terminal: a sentence, a chart, levels and changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prony.model.comparison import effect_text
from prony.model.estimate import Estimate, Grade
from prony.model.history import Change, History, Point, SeriesLevel
from prony.ports.metric_titles import metric_title
from prony.report.escaping import one_line
from prony.report.number import format_number, format_observed

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDEST = 72
_MARKS = {"regression": "R", "improvement": "I", "drift": "D", "environment": "E"}


def history_text(history: History) -> str:
    series = history.series
    branch = f"branch {one_line(series.branch)} · " if series.branch else ""
    where = f"{branch}{one_line(series.machine)}"
    head = f"{one_line(series.title)} · {where} · {metric_title(history.metric)} · {series.state.value}"
    if series.state.value == "learning":
        head += f" {series.learned}/{series.wanted}"
    parts = [head, "", *_chart(history), "", one_line(history.sentence)]
    if series.note:
        parts.append(series.note)
    parts += _levels(history) + _changes(history.changes) + _baseline(history) + _fork(history)
    return "\n".join(parts)


def _chart(history: History) -> list[str]:
    """Return the newest results as blocks, the marks of changes above, and what the lowest and the highest are."""
    shown = history.points[-_WIDEST:]
    values = [point.values.get(history.metric) for point in shown]
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return ["no result has this metric"]
    low, high = min(known), max(known)
    marks = {change.job_id: _MARKS[change.kind] for change in history.changes if change.state.value != "rejected"}
    # A suspicion is written small.
    marks |= {one.job_id: _MARKS[one.kind].lower() for one in history.changes if one.state.value == "suspect"}
    above = "".join(marks.get(point.job_id, " ") for point in shown).rstrip()
    line = "".join(_block(point, value, low, high) for point, value in zip(shown, values, strict=True))
    more = f", the last {len(shown)} of {len(history.points)}" if len(shown) < len(history.points) else ""
    scale = f"▁ {format_observed(low, history.unit, 4)}  █ {format_observed(high, history.unit, 4)}{more}"
    return [part for part in (above, line, scale) if part]


def _block(point: Point, value: float | None, low: float, high: float) -> str:
    if value is None or not math.isfinite(value):
        return "·"
    if point.grade is Grade.VOID:
        return "×"
    share = 0.5 if high == low else (value - low) / (high - low)
    return _BLOCKS[min(len(_BLOCKS) - 1, int(share * len(_BLOCKS)))]


def _levels(history: History) -> list[str]:
    if len(history.segments) < 2:
        return []
    rows = [
        (f"{one.begin + 1}-{one.end}", one.first_job_id, _level(one.level, history.unit), str(one.level.runs))
        for one in history.segments
    ]
    return ["", *_columns(("LEVEL", "FROM JOB", "MEDIAN", "RESULTS"), rows)]


def _changes(changes: Sequence[Change]) -> list[str]:
    if not changes:
        return []
    rows = [(one.id, one.kind, one.state.value, effect_text(one.effect), one.job_id, _why(one)) for one in changes]
    return ["", *_columns(("CHANGE", "KIND", "STATE", "BY", "FROM JOB", "WHAT ELSE CHANGED"), rows)]


def _why(change: Change) -> str:
    said = change.acknowledgement
    known = [f"known: {said.reason}" if said.reason else "known"] if said is not None else []
    return one_line("; ".join([*change.facts, *known])) or "-"


def _baseline(history: History) -> list[str]:
    if history.baseline is None:
        return []
    against = history.against_baseline
    told = "" if against is None else f"; the newest result is {effect_text(against)}"
    return ["", f"baseline: job {history.baseline.job_id}{told}"]


def _fork(history: History) -> list[str]:
    """Say what the newest result of a branch is held against."""
    fork = history.fork
    if fork is None:
        return (
            [] if not history.series.branch else ["", "fork point: the branch that it forked from has no valid result"]
        )
    commit = "an unknown commit" if fork.commit is None else fork.commit[:12]
    value = "" if fork.value is None else f", {format_observed(fork.value, history.unit, 4)}"
    told = f"{one_line(fork.base)} at {commit}, job {fork.job_id}{value}"
    told += "" if fork.against is None else f"; the newest result is {effect_text(fork.against)}"
    return [
        "",
        f"{'fork point' if fork.is_known else 'against'}: {told}",
        *([one_line(fork.note)] if fork.note else []),
    ]


def _level(level: SeriesLevel, unit: str) -> str:
    median = Estimate(
        value=level.median, unit=unit, low=level.low, high=level.high, count=level.runs, method="median of results"
    )
    return format_number(median)


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows))
    return [line.rstrip() for line in lines]
