"""Track the levels of a series run by run: where each began and how the series stands.

A track can be taken up where it was left: each new run is judged once, with what is known by then. So the same runs
give the same track, whether they came one by one or all at once.

Points that can be judged are taken as logarithms, with the sign that makes more mean worse.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prony.analyse.history.detect import (
    LONGEST_VISIT,
    NO_SPEEDS,
    Finding,
    Rules,
    count_visits,
    detect_change,
    stands_apart,
)
from prony.analyse.history.machine_speed import MachineSpeeds
from prony.model.estimate import Grade
from prony.model.history import Point, SeriesLevel
from prony.model.metric import METRICS, Better, is_time_or_rate, key_of
from prony.stats.changes import find_calm
from prony.stats.quantiles import Array
from prony.stats.run_intervals import median_interval

# Two findings as near as this are one change.
NEAR = 5
_PATIENCE = 5
# A fault that was mended comes back once; a machine that switches between two speeds does it again and again.
_TOO_MANY_VISITS = 2


@dataclass(frozen=True)
class NoticedChange:
    """A finding with the run at which it was noticed; positions are those of the whole series."""

    finding: Finding
    at: int

    @property
    def position(self) -> int:
        return self.finding.position


@dataclass(frozen=True)
class Decision:
    """What was decided about a change apart from the history: it was real (a person or more runs said so) or not.

    `at` is the last run that was known then.
    """

    position: int
    at: int
    is_real: bool

    def refutes(self, position: int, seen: int) -> bool:
        """Say whether a finding is the one that was found wrong; with twice as many runs it may be asked again.

        What begins with a run that was not there then is another: nobody has looked at it.
        """
        return abs(self.position - position) <= NEAR and position <= self.at and self.rests(seen)

    def rests(self, seen: int) -> bool:
        """Say whether it was found wrong so lately that nothing of it is asked again."""
        return not self.is_real and seen <= self.at + max(_PATIENCE, self.at - self.position + 1)


@dataclass(frozen=True)
class LevelTrack:
    """`begin` is the first run of the present level, `seen` how many runs were judged.

    `changes` began a level each. `drift`, `suspect` and `machine` (which its canary explains) are what the last run
    said, if it said that; `apart` is how far the last run alone lies from the ones before.
    """

    begin: int = 0
    seen: int = 0
    changes: tuple[NoticedChange, ...] = ()
    drift: NoticedChange | None = None
    suspect: NoticedChange | None = None
    machine: NoticedChange | None = None
    apart: float | None = None

    @property
    def is_first(self) -> bool:
        return self.begin == 0

    def runs_needed(self, rules: Rules) -> int:
        """How many runs this level needs before it is judged."""
        return rules.learning if self.is_first else rules.relearning


def follow_levels(
    values: Array, rules: Rules, course: LevelTrack | None = None, decisions: Sequence[Decision] = (),
    speeds: MachineSpeeds = NO_SPEEDS,
) -> LevelTrack:  # fmt: skip
    """Judge every run that the course has not seen; `speeds`: the machine's canaries beside every run."""
    course = course or LevelTrack()
    # A level that is being learned is not judged: only what was decided meanwhile could begin another.
    if not decisions and not course.changes:
        course = replace(course, seen=max(course.seen, min(values.size, course.begin + rules.learning - 1)))
    calm = _CalmRuns(values, rules, speeds)
    for end in range(course.seen + 1, values.size + 1):
        course = _next(values[:end], rules, course, decisions, speeds, calm)
    level = values[course.begin :]
    # Of one run alone only the last is of interest: for every other it is known what came after it.
    if level.size < course.runs_needed(rules) or any(one.rests(values.size) for one in decisions):
        return replace(course, apart=None)
    return replace(course, apart=stands_apart(level, rules, speeds.between(course.begin, values.size)))


# For fewer new runs it takes longer to look at all of them together than at each.
_WORTH_LOOKING = 4


class _CalmRuns:
    """After which runs of a series nothing is to be found, with or without its canaries: most of them."""

    def __init__(self, values: Array, rules: Rules, speeds: MachineSpeeds) -> None:
        self._values, self._rules, self._speeds = values, rules, speeds
        self._begin, self._first = -1, 0
        self._known: list[bool] = []

    def has(self, begin: int, seen: int) -> bool:
        """Is it sure that nothing is found in the level that began there, when so many runs are known?"""
        if self._values.size - seen < _WORTH_LOOKING and begin != self._begin:
            return False
        if begin != self._begin:
            self._begin, self._first, self._known = begin, seen, self._look(begin, seen)
        return bool(self._known[seen - self._first])

    def _look(self, begin: int, seen: int) -> list[bool]:
        level, window = self._values[begin:], self._rules.window
        found = find_calm(level, seen - begin, window)
        for column in self._speeds.between(begin).logarithms:
            # A canary that was not timed beside every run of the window is not asked.
            found &= find_calm(level - column, seen - begin, window) | _has_gaps(column, seen - begin, window)
        return [bool(one) for one in found]


def _has_gaps(column: Array, first: int, window: int) -> NDArray[np.bool_]:
    """Say for each number of runs from `first` on whether the last `window` of them lack a number."""
    gaps = np.concatenate(([0], np.isnan(column).cumsum()))
    ends = np.arange(first, column.size + 1)
    found: NDArray[np.bool_] = gaps[ends] > gaps[np.maximum(0, ends - window)]
    return found


def _next(
    values: Array, rules: Rules, course: LevelTrack, decisions: Sequence[Decision], speeds: MachineSpeeds,
    calm: _CalmRuns,
) -> LevelTrack:  # fmt: skip
    seen = values.size
    confirmed = [one.position for one in decisions if one.is_real and one.at < seen] if decisions else []
    begin = max([course.begin, *confirmed]) if confirmed else course.begin
    level = values[begin:]
    course = LevelTrack(begin, seen, course.changes)
    course = _count_again(values, rules, course, decisions)
    if level.size < course.runs_needed(rules) or calm.has(begin, seen):
        return course
    finding = detect_change(level, rules, speeds.between(begin, seen))
    if finding is None or _is_refuted(finding.position + begin, seen, decisions):
        return course
    noticed = NoticedChange(_place_finding(values, finding, rules, course, decisions), at=seen - 1)
    if finding.is_machine:
        return replace(course, machine=noticed) if finding.p <= rules.alpha else course
    if finding.p > rules.alpha or finding.is_early:
        return replace(course, suspect=noticed)
    if finding.kind == "drift":
        return replace(course, drift=noticed)
    return replace(course, begin=noticed.position, changes=(*course.changes, noticed))


def _place_finding(
    values: Array, finding: Finding, rules: Rules, course: LevelTrack, decisions: Sequence[Decision]
) -> Finding:
    """Return the finding in the positions of the series, with whether its level was seen before."""
    position = course.begin + finding.position
    is_step = finding.kind != "drift" and not finding.is_machine
    before = slice(max(course.begin, values.size - rules.window), position)
    return replace(finding, position=position, seen_before=is_step and _was_visited(values, before, decisions))


def _was_visited(values: Array, before: slice, decisions: Sequence[Decision]) -> bool:
    """Was the level that begins after the runs `before` seen and left too often for a fault that came back?"""
    position: int = before.stop
    # What was decided to be a real change explains why an earlier level was left: nothing before it counts as a visit.
    since = max((one.position for one in decisions if one.is_real and one.position <= position - NEAR), default=0)
    return count_visits(values[since:position], values[before], values[position:]) >= _TOO_MANY_VISITS


def _count_again(values: Array, rules: Rules, course: LevelTrack, decisions: Sequence[Decision]) -> LevelTrack:
    """Return the course with the visits of its present level counted anew: the three runs by which a change is noticed
    often make a visit out of noise, and each run more makes that rarer."""
    if not course.changes or not (last := course.changes[-1]).finding.seen_before or last.position != course.begin:
        return course
    if values.size - last.position > LONGEST_VISIT:
        return course
    earlier = max((one.position for one in course.changes[:-1]), default=0)
    before = slice(max(earlier, last.at + 1 - rules.window), last.position)
    if _was_visited(values, before, decisions):
        return course
    cleared = replace(last, finding=replace(last.finding, seen_before=False))
    return replace(course, changes=(*course.changes[:-1], cleared))


def _is_refuted(position: int, seen: int, decisions: Sequence[Decision]) -> bool:
    return any(one.refutes(position, seen) for one in decisions)


@dataclass(frozen=True)
class JudgedNumbers:
    """`points` are those that count, in the order of the series; `values` are theirs, `turned` too.

    `speeds` are the canaries of the machine beside them, turned as the values are.
    """

    points: tuple[Point, ...]
    values: Array
    turned: Array
    note: str = ""
    speeds: MachineSpeeds = NO_SPEEDS

    def place_of(self, job_id: str) -> int | None:
        return next((index for index, point in enumerate(self.points) if point.job_id == job_id), None)

    def digest(self, count: int) -> str:
        """Return what these numbers are known by: another order or another result is another digest."""
        told = [f"{point.job_id}={value!r}" for point, value in zip(self.points[:count], self.values, strict=False)]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


def select_numbers(points: Sequence[Point], metric: str, better: Better) -> JudgedNumbers:
    """Take what can be judged, in the order of the points.

    A void result is shown and not judged, and what is not above zero has no ratio.
    """
    kept: list[tuple[Point, float]] = []
    void = absent = no_ratio = 0
    for point in points:
        value = _value_of(point, metric)
        if point.grade is Grade.VOID:
            void += 1
        elif value is None or not math.isfinite(value):
            absent += 1
        elif value <= 0:
            no_ratio += 1
        else:
            kept.append((point, value))
    values = np.array([value for _, value in kept], dtype=np.float64)
    logarithms = np.log(values)
    # A slower machine makes a duration longer and a rate smaller: both are worse, as more is here.
    turned = -logarithms if better == "higher" else logarithms
    judged = tuple(point for point, _ in kept)
    return JudgedNumbers(judged, values, turned, _note(void, absent, no_ratio), _speeds_of(judged, metric))


def _speeds_of(points: Sequence[Point], metric: str) -> MachineSpeeds:
    """Return the canaries of the machine beside some results; none where a speed says nothing of the metric."""
    own = {name: one for point in points for name, one in point.metrics.items()}
    name = key_of(metric).metric
    about = own.get(name) or METRICS.get(name)
    if about is None or not is_time_or_rate(about.unit):
        return NO_SPEEDS
    return canary_columns([point.canary for point in points])


def canary_columns(canaries: Sequence[Mapping[str, float]]) -> MachineSpeeds:
    """Return the canaries beside some runs, by name, as they are judged."""
    names = sorted({name for one in canaries for name in one})
    columns = [np.array([one.get(name, math.nan) for one in canaries]) for name in names]
    return MachineSpeeds(tuple(names), tuple(np.log(np.where(one > 0, one, math.nan)) for one in columns))


def _value_of(point: Point, metric: str) -> float | None:
    return point.values.get(metric)


def level_of(values: Array) -> SeriesLevel:
    """Return where some numbers lie; at least one must be given."""
    ordered = np.sort(values)
    ranks = median_interval(values)
    low, high = (None, None) if ranks is None else (float(ordered[ranks.low - 1]), float(ordered[ranks.high - 1]))
    return SeriesLevel(median=float(np.median(ordered)), low=low, high=high, runs=int(ordered.size))


def _note(void: int, absent: int, no_ratio: int) -> str:
    told = [
        f"{void} void" if void else "",
        f"{absent} without this number" if absent else "",
        f"{no_ratio} of zero or less, which cannot be compared as a ratio" if no_ratio else "",
    ]
    shown = ", ".join(part for part in told if part)
    return f"not judged: {shown}" if shown else ""
