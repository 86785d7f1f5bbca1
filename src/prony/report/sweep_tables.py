"""Format a sweep's table rows and claims for every output format."""

from __future__ import annotations

from prony.model.estimate import Estimate
from prony.model.sweep import Claim, Curve, Level, LimitState, SweepReport, format_levels
from prony.ports.metric_titles import metric_title
from prony.report import entry_fields, number
from prony.report.load_tables import FigureLine

_LIMITED = {"client": "the client", "server": "the server", "machine": "shared", "others": "other processes",
            "none": "nothing seen", "unknown": "unknown"}  # fmt: skip


def headings(curve: Curve) -> tuple[str, ...]:
    """Return the heads of the columns that this curve has something for."""
    return (curve.noun, "throughput", *_optional(curve), "end to end p50", "end to end p99", "errors",
            *_judge_levels(curve), "limited by", "verdict")  # fmt: skip


def lines(curve: Curve) -> list[FigureLine]:
    """Return a line for each level, in ascending order."""
    return [FigureLine(curve.title, _cells(curve, level)) for level in curve.levels]


def narrow(curve: Curve) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and cells for a terminal: only throughput keeps its interval, and what limited is told below."""
    heads = [head for head in headings(curve) if head != "limited by"]
    kept = [place for place, head in enumerate(headings(curve)) if head != "limited by"]
    rows = []
    for line in lines(curve):
        cells = [line.cells[place] for place in kept]
        rows.append(tuple(cell if head in ("throughput", "goodput") else cell.partition(" [")[0]
                          for head, cell in zip(heads, cells, strict=True)))  # fmt: skip
    return tuple(heads), rows


def claims(curve: Curve) -> list[tuple[str, Claim]]:
    """Return each claim with what it is about, the most asked for first."""
    found = [("Knee", curve.knee), ("Throughput limit", curve.limit)]
    return found if curve.slo is None else [*found, ("SLO", curve.slo)]


def method(report: SweepReport) -> str:
    """Say how knees and limits are found."""
    limits = ", ".join(f"{metric_title(key)} {limit:g}" for key, limit in report.slo.items())
    return (
        "Each run counts as one number; requests of several runs are never pooled. A knee is where two straight lines "
        "through the runs of all levels meet. It needs four levels, and a slope after it whose whole interval is below "
        f"{report.gain_share:.0%} of the slope before it. A limit of the SLO is judged in each run by nearest rank, "
        "with failed requests as ones that never end, and then by the lowest and highest run. The highest load that "
        "holds the SLO has no lower level that misses it."
        + (f" Limits: {limits}." if limits else " No limits were set.")
    )


def limits_of_levels(curve: Curve) -> list[str]:
    """Return what limited the levels, in words: a run of levels with the same limit is told once, by its highest."""
    found: list[tuple[list[float], Level]] = []
    for level in curve.levels:
        if found and _describe_limit(found[-1][1]) == _describe_limit(level):
            found[-1] = ([*found[-1][0], level.load], level)
        else:
            found.append(([level.load], level))
    return [
        f"Limit at {format_levels(loads, curve.noun)}: {last.bottleneck.text}"
        for loads, last in found
        if last.bottleneck is not None
    ]


def _describe_limit(level: Level) -> str:
    """Return where the limit was, in two words."""
    if level.bottleneck is None:
        return number.DASH
    where = _LIMITED[level.bottleneck.where]
    return f"{where}: {level.bottleneck.what}" if level.bottleneck.what else where


def _cells(curve: Curve, level: Level) -> tuple[str, ...]:
    errors = number.DASH if level.errors is None else number.format_share(level.errors.value)
    goodput = (_text(level.goodput),) if _optional(curve) else ()
    judged = (_slo(level),) if _judge_levels(curve) else ()
    verdict = entry_fields.verdict_text(level.grade, level.ended_early)
    return (f"{level.load:g}", _text(level.throughput), *goodput, _text(level.p50), _text(level.p99), errors, *judged,
            _describe_limit(level), verdict)  # fmt: skip


def _optional(curve: Curve) -> tuple[str, ...]:
    return ("goodput",) if any(level.goodput is not None for level in curve.levels) else ()


def _judge_levels(curve: Curve) -> tuple[str, ...]:
    return ("SLO",) if any(level.checks for level in curve.levels) else ()


def _slo(level: Level) -> str:
    """Return the worst of a level's limits."""
    states = {check.state for check in level.checks}
    for state in (LimitState.VIOLATED, LimitState.CANNOT_TELL):
        if state in states:
            return state.word
    return LimitState.HELD.word if states else number.DASH


def _text(one: Estimate | None) -> str:
    return number.DASH if one is None else number.format_number(one)
