"""Judge and show the histories of stored series, and what each is held against: its fork point, its baseline.

What is decided here is nothing: the store keeps, `analyse.history` judges. Each step takes an open connection, so that
a server does the reading beside its work and the writing by its own writer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from prony.analyse.metric_keys import complete_key
from prony.errors import InputError, NotFoundError
from prony.model.estimate import Grade
from prony.model.history import (
    OPEN,
    Baseline,
    Change,
    ChangeState,
    ForkResult,
    History,
    NewBaseline,
    Point,
    Segment,
    Series,
    select_branch,
)
from prony.model.metric import Metric, metric_of
from prony.model.queue import Page
from prony.store import series as rows
from prony.store.database import Connection

_UNDECIDED = (ChangeState.SUSPECT, ChangeState.FOUND)

if TYPE_CHECKING:
    from prony.analyse.history.changes_found import HistoryChanges
    from prony.analyse.history.level_track import JudgedNumbers, LevelTrack


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
    known = {key for point in points for key in point.values}
    also = dict.fromkeys(complete_key(key, known) for key in (points[-1].watch if points else ()))
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
    from prony.analyse.history.changes_found import history_sentence, list_changes, order_changes
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
        segments=_segments(found), changes=tuple(order_changes(changes, points)), baseline=baseline,
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


def mark_doubtful(connection: Connection, changes: Page[Change], *, runs_may_decide: bool) -> Page[Change]:
    """Mark the suspects that the history cannot settle, and no runs are going to; and where the machine changed."""
    from prony.analyse.history.changes_found import SEEN_BEFORE
    from prony.store import confirmations

    def is_unsettled(one: Change) -> bool:
        is_stuck = one.state is ChangeState.SUSPECT and one.kind == "regression" and SEEN_BEFORE in one.path
        return is_stuck and (not runs_may_decide or confirmations.cannot_be_run(connection, one.id))

    def mark(one: Change) -> Change:
        is_machines = one.state in _UNDECIDED and confirmations.has_machine_changed(connection, one.id)
        return one.model_copy(update={"unsettled": is_unsettled(one), "machine_changed": is_machines})

    return changes.model_copy(update={"items": tuple(map(mark, changes.items))})


# Decided


def set_baseline(connection: Connection, series_id: str, wanted: NewBaseline, *, who: str, at: datetime) -> Baseline:
    """Pin a result of a series, the newest that may be quoted by default."""
    series, _ = rows.one(connection, series_id)
    points = [point for point in rows.points(connection, series_id) if point.grade is not Grade.VOID]
    chosen = [point for point in points if wanted.job_id in (None, point.job_id)]
    if not chosen:
        hint = "a void result cannot be a baseline; `prony history ID` lists the results"
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


def find_fork(connection: Connection, points: Sequence[Point], metric: str) -> ForkResult | None:
    """Return the result of the base that the newest of these points is held against; None on the default branch, and
    where the base has no result that may be quoted."""
    from prony.analyse.references import rank_fork_results

    newest = points[-1] if points else None
    if newest is None or newest.git is None or newest.git.base is None or newest.base_series_id is None:
        return None
    usable = [point for point in rows.points(connection, newest.base_series_id) if point.grade is not Grade.VOID]
    ranked = rank_fork_results(newest.git, usable, lambda point: point.git)
    if not ranked.items:
        return None
    found = ranked.items[0]
    before, now = found.values.get(metric), newest.values.get(metric)
    return ForkResult(
        base=newest.git.base, commit=None if found.git is None else found.git.commit, is_known=not ranked.note,
        note=ranked.note, series_id=found.series_id, job_id=found.job_id, experiment_id=found.experiment_id,
        measured_at=found.measured_at, value=before, against=now / before - 1 if before and now is not None else None,
    )  # fmt: skip
