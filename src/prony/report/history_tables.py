"""Describe an experiment's place in its histories: sentences and the rows of two tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prony.model.comparison import effect_text
from prony.model.history import OPEN, Change, ChangeState, History, Point, SeriesState
from prony.ports.metric_titles import metric_title
from prony.report import number
from prony.report.load_tables import FigureLine

HEADINGS = ("series", "metric", "state", "results", "this one", "level now", "against the baseline")
CHANGES = ("change", "of", "kind", "state", "by", "interval", "since job", "what else changed")
_GRAVEST_FIRST = (
    SeriesState.REGRESSION, SeriesState.SUSPECT, SeriesState.DRIFT, SeriesState.ENVIRONMENT, SeriesState.IMPROVEMENT,
    SeriesState.STEADY, SeriesState.LEARNING,
)  # fmt: skip


def gravest_first(histories: Sequence[History]) -> list[History]:
    """Return the gravest first, else as the jobs are."""
    return sorted(histories, key=lambda one: _GRAVEST_FIRST.index(one.series.state))


def sentences(histories: Sequence[History], experiment_id: str) -> list[str]:
    """Say what changed with this experiment or is open, then in one sentence how the others stand."""
    told: list[str] = []
    quiet: list[History] = []
    for one in gravest_first(histories):
        mine = [change for change in standing(one) if change.experiment_id == experiment_id]
        if mine:
            told += [change.sentence for change in mine]
        elif any(change.state in OPEN for change in one.changes):
            told.append(one.sentence)
        else:
            quiet.append(one)
    told += _quiet(quiet)
    return list(dict.fromkeys(told)) + [text for one in histories if (text := _baseline(one, experiment_id))]


def standing(history: History) -> list[Change]:
    """Return the changes that runs side by side did not reject."""
    return [change for change in history.changes if change.state is not ChangeState.REJECTED]


def own(history: History, experiment_id: str) -> tuple[int, Point] | None:
    """Return this experiment's last result in the series, and its place from 1."""
    mine = [(n, point) for n, point in enumerate(history.points, 1) if point.experiment_id == experiment_id]
    return mine[-1] if mine else None


def lines(histories: Sequence[History], experiment_id: str) -> list[FigureLine]:
    """Return a line for each series, the gravest first."""
    return [_line(one, experiment_id) for one in gravest_first(histories)]


def change_lines(histories: Sequence[History]) -> list[FigureLine]:
    """Return a line for each change that stands, series by series."""
    return [_change(change) for one in gravest_first(histories) for change in standing(one)]


def _quiet(histories: Sequence[History]) -> list[str]:
    if len(histories) < 2:
        return [one.sentence for one in histories]
    counted = Counter(one.series.state for one in histories)
    told = ", ".join(f"{counted[state]} {_words(state)}" for state in _GRAVEST_FIRST if counted[state])
    return [f"{len(histories)} histories have no open change: {told}."]


def _words(state: SeriesState) -> str:
    return "too short to judge" if state is SeriesState.LEARNING else state.value


def _baseline(history: History, experiment_id: str) -> str:
    against = _against(history, experiment_id)
    if history.baseline is None or against is None or history.baseline.experiment_id == experiment_id:
        return ""
    return f"{history.series.title} changed by {against} against its baseline, job {history.baseline.job_id}."


def _line(history: History, experiment_id: str) -> FigureLine:
    series, mine = history.series, own(history, experiment_id)
    state = series.state.value
    if series.state is SeriesState.LEARNING:
        state = f"{state} {series.learned}/{series.wanted}"
    count, later = str(len(history.points)), len(history.points) - (mine[0] if mine else 0)
    results = f"{count}, {later} later" if mine and later else count
    level = history.segments[-1].level if history.segments else None
    shown = number.DASH if level is None else _text(history, level.median)
    if level is not None and level.low is not None and level.high is not None:
        shown += f" [{_text(history, level.low)}, {_text(history, level.high)}]"
    value = None if mine is None else mine[1].values.get(history.metric)
    newest = number.DASH if value is None else _text(history, value)
    against = _against(history, experiment_id) or number.DASH
    cells = (metric_title(history.metric), state, results, newest, shown, against)
    branch = f", branch {series.branch}," if series.branch else ""
    return FigureLine(f"{series.title}{branch} on {series.machine}", cells)


def _text(history: History, value: float) -> str:
    return number.format_observed(value, history.unit, 4)


def _against(history: History, experiment_id: str) -> str:
    """Return how this experiment's result relates to the pinned one; empty where there is none."""
    mine = own(history, experiment_id)
    if history.baseline is None or mine is None:
        return ""
    pinned = next((one for one in history.points if one.job_id == history.baseline.job_id), None)
    before = None if pinned is None else pinned.values.get(history.metric)
    value = mine[1].values.get(history.metric)
    return effect_text(value / before - 1) if before and value is not None else ""


def _change(change: Change) -> FigureLine:
    size, bracket, rest = effect_text(change.effect, change.low, change.high).partition(" [")
    said = change.acknowledgement
    words = [*change.facts, *([f"known: {said.reason}" if said.reason else "known"] if said is not None else [])]
    interval = f"[{rest}" if bracket else number.DASH
    cells = (change.title, change.kind, change.state.value, size, interval, change.job_id,
             "; ".join(words) or number.DASH)  # fmt: skip
    return FigureLine(change.id, cells)
