"""Judge and show the histories of stored series; acknowledge changes and manage baselines.

What is decided here is nothing: the store keeps, `analyse.history` judges. Each step takes an open connection, so that
a server does the reading beside its work and the writing by its own writer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from prony.app.fork_results import find_fork
from prony.errors import ConflictError, InputError, NotFoundError
from prony.model.estimate import Grade
from prony.model.history import (
    OPEN,
    Acknowledgement,
    Baseline,
    Change,
    ChangeState,
    History,
    NewBaseline,
    Point,
    Segment,
    Series,
    select_branch,
)
from prony.model.metric import Metric, is_time_or_rate, metric_of
from prony.model.queue import Page
from prony.store import series as rows
from prony.store.database import Connection

if TYPE_CHECKING:
    from prony.analyse.history.changes_found import HistoryChanges
    from prony.analyse.history.confirmation import Repeats
    from prony.analyse.history.level_track import JudgedNumbers, LevelTrack
    from prony.stats.shift import Shift


@dataclass(frozen=True)
class Judgement:
    """What was found of one series, and from which points."""

    told: HistoryChanges
    course: str
    seen: tuple[str, ...]


def judge_series(connection: Connection, series_id: str) -> Judgement:
    """Judge what is new of a series; all of it where results came between others, went, or were decided upon."""
    from prony.analyse.history.changes_found import decisions, list_changes, merge_metrics
    from prony.analyse.history.detect import Rules
    from prony.analyse.history.level_track import follow_levels, select_numbers

    series, kept = rows.one(connection, series_id)
    points, known = rows.points(connection, series_id), rows.changes(connection, series_id)
    named = [point.git.default_branch for point in points if point.git is not None and point.git.default_branch]
    series = series.model_copy(update={"default_branch": named[-1] if named else None})
    metrics = _watched_metrics(series, points)
    rules, courses = Rules().share_among(len(metrics)), _read_courses(kept)
    told, written = [], {}
    for metric in metrics:
        own = _under_metric(series, metric, points)
        found = select_numbers(points, metric, own.better)
        of_metric = [one for one in known if one.metric == metric]
        before = _taken_up(courses.get(metric, courses.get("") if metric == series.metric else None), found)
        course = follow_levels(found.turned, rules, before, decisions(found, of_metric), found.speeds)
        canary = rows.canary(connection, series.hardware_id) if course.changes else ()
        told.append(list_changes(own, found, course, of_metric, rules, canary))
        written[metric] = _written(course, found)
    dropped = [one for one in known if one.metric not in metrics and one.state not in OPEN]
    return Judgement(
        merge_metrics(told, dropped), json.dumps({"courses": written}), tuple(one.job_id for one in points)
    )


def _watched_metrics(series: Series, points: Sequence[Point]) -> tuple[str, ...]:
    """Return the headline, and what the newest result says is watched besides, as far as there are numbers of it."""
    also = points[-1].watch if points else ()
    known = {key for point in points for key in point.values}
    return (series.metric, *(one for one in also if one != series.metric and one in known))


def _under_metric(series: Series, metric: str, points: Sequence[Point]) -> Series:
    if metric == series.metric:
        return series
    about = _about(metric, points)
    return series.model_copy(update={"metric": metric, "unit": about.unit, "better": about.better})


def _read_courses(kept: str | None) -> dict[str, Any]:
    """Return how far each metric was judged; under no name, as it was kept when the headline alone was."""
    plain: dict[str, Any] = {} if kept is None else json.loads(kept)
    courses: dict[str, Any] = plain.get("courses", {"": plain} if plain else {})
    return courses


def save_judgement(connection: Connection, judgement: Judgement) -> tuple[Change, ...]:
    """Keep a judgement; return the changes that were not there before, or stand otherwise now."""
    told = judgement.told
    before = {one.id: one for one in rows.changes(connection, told.series.id)}
    # Somebody may have decided something while it was judged: that is taken up when it is judged the next time.
    stands = [_kept_decision(one, before.get(one.id)) for one in told.changes]
    if stands != list(before.values()):
        rows.keep_changes(connection, told.series.id, stands)
    rows.keep_judgement(connection, told.series, judgement.course, judgement.seen)
    return tuple(one for one in stands if one.id not in before or before[one.id].state is not one.state)


def _kept_decision(fresh: Change, known: Change | None) -> Change:
    from prony.analyse.history.changes_found import restate_change

    decided = (ChangeState.ACKNOWLEDGED, ChangeState.CONFIRMED, ChangeState.REJECTED)
    if known is None or known.state not in decided or fresh.state in (*decided, ChangeState.RESOLVED):
        return fresh
    kept: dict[str, Any] = {
        "state": known.state,
        "acknowledgement": known.acknowledgement,
        "decided_after": known.decided_after,
        "path": known.path,
    }
    return restate_change(fresh.model_copy(update=kept))


def _written(course: LevelTrack, found: JudgedNumbers) -> dict[str, Any]:
    return asdict(course) | {"apart": None, "digest": found.digest(course.seen)}


def _taken_up(plain: dict[str, Any] | None, found: JudgedNumbers) -> LevelTrack | None:
    """Return how far the series was judged, where the points until there are the same as then."""
    from prony.analyse.history.detect import Finding
    from prony.analyse.history.level_track import LevelTrack, NoticedChange

    if plain is None:
        return None
    digest, seen = plain["digest"], int(plain["seen"])
    if seen > len(found.points) or digest != found.digest(seen):
        return None

    def read_finding(one: dict[str, Any] | None) -> NoticedChange | None:
        return None if one is None else NoticedChange(Finding(**one["finding"]), one["at"])

    changes = tuple(one for one in map(read_finding, plain["changes"]) if one is not None)
    drift, suspect, machine = (read_finding(plain.get(name)) for name in ("drift", "suspect", "machine"))
    return LevelTrack(plain["begin"], seen, changes, drift, suspect, machine)


# Shown


def history(connection: Connection, series_id: str, metric: str | None = None) -> History:
    """Return one series; under another metric than its own it is judged for this answer alone."""
    from prony.analyse.history.changes_found import history_sentence, list_changes
    from prony.analyse.history.detect import Rules
    from prony.analyse.history.level_track import follow_levels, select_numbers

    series, _ = rows.one(connection, series_id)
    points, baseline = rows.points(connection, series_id), rows.find_baseline(connection, series_id)
    changes: Sequence[Change] = rows.changes(connection, series_id)
    if metric is not None and metric != series.metric:
        is_watched = metric in _watched_metrics(series, points)
        series = _under_metric(series, metric, points)
        found, rules = select_numbers(points, metric, series.better), Rules()
        answer = list_changes(series, found, follow_levels(found.turned, rules, speeds=found.speeds), (), rules)
        series = answer.series
        changes = [one for one in changes if one.metric == metric] if is_watched else answer.changes
    found = select_numbers(points, series.metric, series.better)
    made = History(
        series=series, metric=series.metric, unit=series.unit, better=series.better, points=points,
        segments=_segments(found), changes=tuple(changes), baseline=baseline,
        against_baseline=_against(found, baseline, series.metric, points),
        fork=find_fork(connection, points, series.metric),
    )  # fmt: skip
    return made.model_copy(update={"sentence": history_sentence(made)})


def _about(metric: str, points: Sequence[Point]) -> Metric:
    known = {key for point in points for key in point.values}
    if metric not in known:
        hint = f"it has {', '.join(sorted(known)[:12])}" if known else "it has no results yet"
        raise InputError(f"this series has no {metric!r}", hint=hint, code="unknown_metric")
    own = {name: one for point in points for name, one in point.metrics.items()}
    return metric_of(metric, own)


def _segments(found: JudgedNumbers) -> tuple[Segment, ...]:
    from prony.analyse.history.detect import Rules
    from prony.analyse.history.level_track import level_of
    from prony.stats.changes import segments

    return tuple(
        Segment(
            first_job_id=found.points[low].job_id, last_job_id=found.points[high - 1].job_id, begin=low, end=high,
            level=level_of(found.values[low:high]),
        )
        for low, high in segments(found.turned, alpha=Rules().alpha)
    )  # fmt: skip


def _against(found: JudgedNumbers, baseline: Baseline | None, metric: str, points: Sequence[Any]) -> float | None:
    """Return how the newest result relates to the baseline, 0.05 is five per cent more; None where that is unknown."""
    if baseline is None or not found.points:
        return None
    pinned = next((point.values.get(metric) for point in points if point.job_id == baseline.job_id), None)
    return float(found.values[-1]) / pinned - 1 if pinned else None


def series_named(connection: Connection, text: str, branch: str | None = None) -> tuple[Series, ...]:
    """Return the series that a person means by a recipe's name (on one branch or on all) or the beginning of an id; at
    least one."""
    found = rows.find_series(connection, text)
    if not found:
        raise NotFoundError(f"no series {text!r}", hint="`prony history` lists them", code="no_series")
    listed = [rows.one(connection, one)[0] for one in found]
    is_by_name = any(one.name == text for one in listed)
    return select_branch(listed, text, branch if is_by_name else None)


def mark_unsettled(connection: Connection, changes: Page[Change], *, runs_may_decide: bool) -> Page[Change]:
    """Mark the suspects that the history cannot settle, and no runs are going to."""
    from prony.analyse.history.changes_found import SEEN_BEFORE
    from prony.store import confirmations

    def is_unsettled(one: Change) -> bool:
        is_stuck = one.state is ChangeState.SUSPECT and one.kind == "regression" and SEEN_BEFORE in one.path
        return is_stuck and (not runs_may_decide or confirmations.cannot_be_run(connection, one.id))

    return changes.model_copy(
        update={"items": tuple(one.model_copy(update={"unsettled": is_unsettled(one)}) for one in changes.items)}
    )


# Decided


def acknowledge(
    connection: Connection, change_id: str, words: Acknowledgement, *, who: str, at: datetime
) -> Change:  # fmt: skip
    """Note that a person knows of a change: it is told no more, and its level is the one to be held."""
    found = rows.change(connection, change_id)
    if found.state not in OPEN:
        raise ConflictError(f"change {change_id} is {found.state} already", hint="only an open one is acknowledged")
    said = words.model_copy(update={"who": who, "at": at})
    return _decide(connection, found, ChangeState.ACKNOWLEDGED, {"acknowledgement": said})


def confirm(
    connection: Connection, change_id: str, pairs: Sequence[tuple[float, float]], *, is_last: bool = False
) -> Change | None:
    """Judge a change by runs of both versions side by side, (old, new) each; None where it is open: run more pairs.

    `analyse.history.confirming` says how many pairs, at first and then; `is_last`: there will be no more.
    """
    import numpy as np

    from prony.analyse.history.confirmation import judge_pairs
    from prony.analyse.history.detect import Rules
    from prony.stats.shift import paired_ratio

    found = _still_open(connection, change_id)
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    _check_positive(values, "a pair is two numbers above zero")
    differences = np.log(values[:, 1] / values[:, 0]) * (-1 if found.better == "higher" else 1)
    is_worse = (found.effect > 0) == (found.better != "higher")
    said = judge_pairs(differences, Rules(), worse=is_worse, is_last=is_last)
    agree = int(np.count_nonzero(differences > 0 if is_worse else differences < 0))
    size = _size(paired_ratio(values[:, 0], values[:, 1]))
    told = f"side by side: {agree} of {len(differences)} pairs say the same, {size}, {said}"
    return _record_answer(connection, found, said, told)


@dataclass(frozen=True)
class RepeatedRun:
    """One result of a metric, and the canaries of the machine beside it."""

    value: float
    canary: dict[str, float]


def confirm_again(
    connection: Connection, change_id: str, before: Sequence[RepeatedRun], after: Sequence[RepeatedRun], *,
    is_last: bool = False,
) -> tuple[str, Change | None]:  # fmt: skip
    """Judge a change by running the same job again, where nothing can be set back: not both versions side by side.

    Return the answer of `judge_repeats`, and the change where that decides it.
    """
    import numpy as np

    from prony.analyse.history.confirmation import judge_repeats
    from prony.analyse.history.detect import Rules
    from prony.stats.shift import ratio

    found = _still_open(connection, change_id)
    sides = [np.array([one.value for one in runs], dtype=np.float64) for runs in (before, after)]
    for values in sides:
        _check_positive(values, "results are numbers above zero")
    # The direction was said before these were run: it got worse.
    old, new = (_repeats(runs, found) for runs in (before, after))
    said = judge_repeats(old, new, Rules(), is_last=is_last)
    runs = f"{new.values.size} runs of the same job against {old.values.size} before the change"
    told = f"repeated: {runs}, not side by side, {_size(ratio(sides[0], sides[1]))}, {_ANSWERS[said]}"
    if said in ("confirmed", "rejected"):
        return said, _record_answer(connection, found, said, told)
    if said != "open":
        note_change(connection, change_id, told)
    return said, None


_ANSWERS = {
    "confirmed": "confirmed",
    "rejected": "rejected",
    "open": "open",
    "machine": "but its canary says that the machine changed",
    "unsettled": "but nothing tells whether the machine or the code changed",
}


def _repeats(runs: Sequence[RepeatedRun], change: Change) -> Repeats:
    import numpy as np

    from prony.analyse.history.confirmation import Repeats
    from prony.analyse.history.level_track import canary_columns

    turned = np.log([one.value for one in runs]) * (-1 if change.better == "higher" else 1)
    is_speed = is_time_or_rate(change.unit)
    return Repeats(turned, canary_columns([one.canary if is_speed else {} for one in runs]))


def confirm_once(connection: Connection, change_id: str, before: Sequence[float], again: float) -> Change | None:
    """Judge one suspicious result by one more: a spike is rejected; None where it may be a change."""
    import numpy as np

    from prony.analyse.history.confirmation import was_spike

    found = _still_open(connection, change_id)
    values = np.array((*before, again), dtype=np.float64)
    _check_positive(values, "results are numbers above zero")
    turned = np.log(values) * (-1 if found.better == "higher" else 1)
    if not was_spike(turned[:-1], float(turned[-1])):
        return None
    return _record_answer(
        connection, found, "rejected", "repeated: one more run was at the old level, so this was a spike"
    )


def _size(found: Shift) -> str:
    """Say how many times as much it is, as it is said of the change itself."""
    text = f"{found.value - 1:+.1%}"
    return text if found.low is None or found.high is None else f"{text} [{found.low - 1:+.1%}, {found.high - 1:+.1%}]"


def _still_open(connection: Connection, change_id: str) -> Change:
    found = rows.change(connection, change_id)
    if found.state not in OPEN:
        raise ConflictError(f"change {change_id} is {found.state} already", hint="only an open one is confirmed")
    return found


def _check_positive(values: Any, said: str) -> None:
    import numpy as np

    if not values.size or not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise InputError(said, hint="leave out those of which a run failed")


def _record_answer(connection: Connection, found: Change, said: str, told: str) -> Change | None:
    if said == "open":
        return None
    state = ChangeState.CONFIRMED if said == "confirmed" else ChangeState.REJECTED
    return _decide(connection, found, state, {"path": (*found.path, told)})


def note_change(connection: Connection, change_id: str, told: str) -> Change | None:
    """Add to how a change was found; None where it is gone, or says so already."""
    try:
        found = rows.change(connection, change_id)
    except NotFoundError:
        return None
    if told in found.path:
        return None
    noted = found.model_copy(update={"path": (*found.path, told)})
    rows.keep_change(connection, noted)
    return noted


def _decide(connection: Connection, found: Change, state: ChangeState, more: dict[str, Any]) -> Change:
    from prony.analyse.history.changes_found import restate_change

    points = rows.points(connection, found.series_id)
    last = points[-1].job_id if points else None
    changed = restate_change(found.model_copy(update={"state": state, "decided_after": last} | more))
    rows.keep_change(connection, changed)
    rows.wake(connection, found.series_id)
    return changed


def set_baseline(connection: Connection, series_id: str, wanted: NewBaseline, *, who: str, at: datetime) -> Baseline:
    """Pin a result of a series, the newest that may be quoted by default."""
    series, _ = rows.one(connection, series_id)
    points = [point for point in rows.points(connection, series_id) if point.grade is not Grade.VOID]
    chosen = [point for point in points if wanted.job_id in (None, point.job_id)]
    if not chosen:
        hint = "a void result is no baseline; `prony history ID` lists the results"
        raise NotFoundError(f"series {series_id} has no such result", hint=hint, code="no_result")
    point = chosen[-1]
    made = Baseline(
        series_id=series_id, job_id=point.job_id, experiment_id=point.experiment_id,
        value=point.values.get(series.metric), set_at=at, who=who, reason=wanted.reason,
    )  # fmt: skip
    rows.save_baseline(connection, made)
    return made


def baseline(connection: Connection, series_id: str) -> Baseline:
    rows.one(connection, series_id)
    found = rows.find_baseline(connection, series_id)
    if found is None:
        hint = "`prony baseline set` pins a result"
        raise NotFoundError(f"series {series_id} has no baseline", hint=hint, code="no_baseline")
    return found


def clear_baseline(connection: Connection, series_id: str) -> None:
    rows.one(connection, series_id)
    if not rows.delete_baseline(connection, series_id):
        raise NotFoundError(f"series {series_id} has no baseline", hint="there is nothing to clear", code="no_baseline")
