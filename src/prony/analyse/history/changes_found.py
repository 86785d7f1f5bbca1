"""List and describe the changes of a series and its current state, keeping earlier names and decisions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from prony.analyse.history.causes import Causes, causes
from prony.analyse.history.detect import Finding, Rules
from prony.analyse.history.level_track import NEAR, Decision, JudgedNumbers, LevelTrack, NoticedChange, level_of
from prony.analyse.wording import format_ends, plain_number
from prony.model.calibration import Calibration
from prony.model.comparison import effect_text
from prony.model.history import (
    OPEN,
    Change,
    ChangeKind,
    ChangeState,
    History,
    Point,
    Series,
    SeriesLevel,
    SeriesNoise,
    SeriesState,
)
from prony.ports.metric_titles import metric_title, name_without_unit
from prony.stats.quantiles import Array
from prony.stats.shift import Shift, shift
from prony.stats.spread import detectable_shift, robust_cv

# What runs that were made to decide it added to how a change was found: it stays when the series is judged again.
BY_RUNS = ("side by side", "repeated", "confirming runs")
# Said of a suspect that may be a machine which switches between two speeds.
SEEN_BEFORE = "the level was seen before, and was left again more than once"
_VERBS = {"regression": "got worse", "improvement": "got better", "drift": "drifts", "environment": "changed"}

_ANSWERS = {
    ChangeState.CONFIRMED: "Extra runs confirm it",
    ChangeState.REJECTED: "Extra runs do not confirm it",
    ChangeState.ACKNOWLEDGED: "It is acknowledged",
    ChangeState.RESOLVED: "It is over: the level is back to normal",
}
# So many of the latest results say whether a change still has an effect.
_RECENT = 30


def _change_sentence(change: Change) -> str:
    size = effect_text(change.effect, change.low, change.high)
    sure = "one result alone" if change.p is None else f"p = {change.p:.2g}"
    about = f"{metric_title(change.metric)} of {change.title} on {change.machine} {_verb(change)} by {size}"
    levels = f"from {_level(change.before)} to {_level(change.after)} {change.unit}"
    runs = f"{change.before.runs} results before and {change.after.runs} after"
    parts = [f"{about} from job {change.job_id} on: {levels}, {runs}, {sure}."]
    if change.kind == "environment":
        parts.append("The machine changed at this point, so the code is probably not the cause.")
    if change.facts:
        parts.append(f"What else changed: {'; '.join(change.facts)}.")
    return " ".join([*parts, change.settle]).strip()


def restate_change(change: Change) -> Change:
    """Return a change that was decided since it was told of, with what is said of it now."""
    if change.state not in _ANSWERS:
        return change
    by_runs = [step for step in change.path if step.startswith(BY_RUNS[:2])]
    settled = change.model_copy(update={"settle": f"{_ANSWERS[change.state]}{': ' + by_runs[-1] if by_runs else ''}."})
    return settled.model_copy(update={"sentence": _change_sentence(settled)})


def _settle_text(change: Change, *, seen_before: bool = False) -> str:
    """Say what would change the verdict."""
    if seen_before:
        return (
            "The series was at this level before and left it more than once, like a machine "
            "that switches between two speeds. Run both versions side by side to find out."
        )
    if change.state is ChangeState.SUSPECT:
        return "Run both versions side by side, or wait for a few more results, to decide it."
    if change.kind == "drift":
        return "It has no single first result: look for something that grows on this machine, or for small changes."
    return ""


def history_sentence(history: History) -> str:
    """Say how a series stands."""
    series = history.series
    if not history.points:
        return f"{series.title} has no results yet."
    if series.state is SeriesState.LEARNING:
        told = f"{series.title} on {series.machine} is learning ({series.learned}/{series.wanted} results)."
        return f"{told} {series.note}".strip()
    open_changes = [change for change in history.changes if change.state in (ChangeState.FOUND, ChangeState.CONFIRMED)]
    if open_changes and series.state is not SeriesState.STEADY:
        return open_changes[-1].sentence
    if series.state is SeriesState.SUSPECT and history.changes:
        return history.changes[-1].sentence
    level = history.segments[-1].level if history.segments else None
    where = f" at {_level(level)} {history.unit}" if level is not None else ""
    what = f"{metric_title(history.metric)} of {series.title} on {series.machine}"
    return f"{what} is steady{where}, {series.runs} results."


def rules_sentence(rules: Rules) -> str:
    """Say how a history is judged."""
    return (
        f"Each result is judged against the last {rules.window} of its series, with one number per result, on a "
        "logarithmic scale. A permutation test checks every place where the level may have changed, at a significance "
        f"level of {rules.alpha:.1%} per result. Changes below {rules.least:.0%} are not reported; from "
        f"{rules.suspicion:.0%} on, a change is suspected. The first {rules.learning} results of a series, and "
        f"{rules.relearning} after a change, are only for learning. The plotted levels use all results."
    )


def _verb(change: Change) -> str:
    if change.state is ChangeState.SUSPECT:
        return f"may have {_VERBS[change.kind]}"
    return f"seemed to have {_VERBS[change.kind]}" if change.state is ChangeState.REJECTED else _VERBS[change.kind]


def _level(level: SeriesLevel) -> str:
    if level.low is None or level.high is None:
        return plain_number(level.median)
    return f"{plain_number(level.median)} {format_ends(level.low, level.high)}"


_DECIDED = (ChangeState.CONFIRMED, ChangeState.REJECTED, ChangeState.ACKNOWLEDGED)


@dataclass(frozen=True)
class HistoryChanges:
    """What is to be kept after a judgement: the series as it stands now, and its changes, the oldest first."""

    series: Series
    changes: tuple[Change, ...]


def decisions(judged: JudgedNumbers, known: Sequence[Change]) -> list[Decision]:
    """Return what people and confirming runs decided, in the positions of these points."""
    found = []
    for change in known:
        position = judged.place_of(change.job_id)
        if change.state in _DECIDED and position is not None:
            behind = _known_behind(position, change, judged)
            last = len(judged.points) - 1 if behind is None else position + behind - 1
            found.append(Decision(position, last, is_real=change.state is not ChangeState.REJECTED))
    return found


def _known_behind(place: int, change: Change, judged: JudgedNumbers) -> int | None:
    """Return how many results from a place on were known when a change was decided; None where that is forgotten.

    Results are in the order of commits: the last one is not always the newest.
    """
    newest = judged.place_of(change.decided_after or "")
    if newest is None:
        return None
    then = judged.points[newest].measured_at
    return sum(point.measured_at <= then for point in judged.points[place:])


def list_changes(
    series: Series, judged: JudgedNumbers, course: LevelTrack, known: Sequence[Change], rules: Rules,
    canary: Sequence[Calibration] = (),
) -> HistoryChanges:  # fmt: skip
    """Say what there is to say now; a change that was known before keeps its name and what was decided of it.

    `series` stands as it was judged last.
    """
    teller = _Teller(series, judged, course, rules, tuple(canary))
    fresh = [_Fresh(teller.change(one, until), one.position, one.at) for one, until in teller.list_noticed()]
    matched = order_changes(_Matcher(judged, series.last_at).match(fresh, known), judged.points)
    changes = teller.mark_gone(_mark_resolved(matched, rules))
    return HistoryChanges(_standing(series, judged, course, changes, rules), tuple(changes))


def order_changes(changes: Sequence[Change], points: Sequence[Point]) -> list[Change]:
    """Put changes in the order in which their first results stand; one whose result is not there any more by time."""
    places = {point.job_id: float(index) for index, point in enumerate(points)}

    def place(change: Change) -> float:
        own = places.get(change.job_id)
        return sum(point.measured_at < change.measured_at for point in points) - 0.5 if own is None else own

    return sorted(changes, key=lambda one: (place(one), one.id))


# How a series stands is how the worst of its watched metrics stands.
_WORST_FIRST = (
    SeriesState.REGRESSION, SeriesState.ENVIRONMENT, SeriesState.DRIFT, SeriesState.SUSPECT
)  # fmt: skip


def merge_metrics(judged: Sequence[HistoryChanges], kept: Sequence[Change]) -> HistoryChanges:
    """Return one judgement of all watched metrics of a series, the headline's first; `kept`: what stays as it is."""
    series = judged[0].series
    states = [one.series.state for one in judged]
    worst = next((state for state in _WORST_FIRST if state in states), series.state)
    changes = [change for one in judged for change in one.changes] + list(kept)
    ordered = tuple(sorted(changes, key=lambda one: (one.measured_at, one.id)))
    return HistoryChanges(series.model_copy(update={"state": worst}), ordered)


@dataclass(frozen=True)
class _Teller:
    series: Series
    judged: JudgedNumbers
    course: LevelTrack
    rules: Rules
    canary: tuple[Calibration, ...]

    def list_noticed(self) -> list[tuple[NoticedChange, int]]:
        """Return all that was noticed, each with the run before which its level ended."""
        ends = [one.position for one in self.course.changes[1:]] + [self.course.seen]
        found = list(zip(self.course.changes, ends, strict=True)) if self.course.changes else []
        for one in (self.course.drift, self.course.machine):
            found += [(one, self.course.seen)] if one is not None else []
        suspect = self.course.suspect or self._alone()
        if suspect is not None and (suspect.finding.kind == "drift" or suspect.finding.shift > 0):
            found.append((suspect, self.course.seen))
        return found

    def _alone(self) -> NoticedChange | None:
        """Return the last run as a suspicion, where it stands apart for the worse."""
        if self.course.apart is None or self.course.apart <= 0:
            return None
        last = self.course.seen - 1
        away = float(self.judged.turned[last] - np.median(self.judged.turned[self.course.begin : last]))
        return NoticedChange(Finding("regression", last, away, self.course.apart, math.nan, 0.0), at=last)

    def change(self, noticed: NoticedChange, until: int) -> Change:
        finding, series, points = noticed.finding, self.series, self.judged.points
        position = finding.position
        began = max((one.position for one in self.course.changes if one.position < position), default=0)
        before = self.judged.values[max(began, position - self.rules.window) : position]
        after = self.judged.values[position:until]
        moved = self._size(finding, max(began, position - self.rules.window), until)
        why = causes(points, position, math.expm1(moved.value), self.canary)
        kind, state = _kind(finding, why), self._state(finding, noticed)
        made = Change(
            id=_name(series.id, series.metric, points[position].job_id), series_id=series.id, name=series.name,
            title=series.title, branch=series.branch, machine=series.machine,
            metric=series.metric, unit=series.unit, better=series.better,
            kind=kind, state=state, job_id=points[position].job_id, experiment_id=points[position].experiment_id,
            measured_at=points[position].measured_at, last_good_job_id=points[position - 1].job_id,
            noticed_at=max(point.measured_at for point in points[: noticed.at + 1]),
            commits=why.commits, facts=why.told, before=level_of(before), after=level_of(after),
            effect=math.expm1(moved.value),
            low=_relative(moved.low), high=_relative(moved.high), p=None if math.isnan(finding.p) else finding.p,
            noise=_noise(before, after.size, finding.correlated), path=_path(finding),
            beside=self._beside(position, began, until),
        )  # fmt: skip
        settle = _settle_text(made, seen_before=finding.seen_before)
        made = made.model_copy(update={"settle": settle})
        return made.model_copy(update={"sentence": _change_sentence(made)})

    def _state(self, finding: Finding, noticed: NoticedChange) -> ChangeState:
        is_sure = noticed in self.course.changes or noticed in (self.course.drift, self.course.machine)
        return ChangeState.FOUND if is_sure and not finding.seen_before else ChangeState.SUSPECT

    def _size(self, finding: Finding, low: int, high: int) -> Shift:
        """Return how far the logarithms moved, without what the canary shows of the machine where that was left out."""
        place, values = finding.position, np.log(self.judged.values)
        if finding.canary is not None and not finding.is_machine:
            beside = self.judged.speeds.beside(finding.canary)
            known = np.where(np.isnan(beside), np.nanmedian(beside[low:high]), beside)
            values = values + known if self.series.better == "higher" else values - known
        return shift(values[low:place], values[place:high])

    def mark_gone(self, changes: Sequence[Change]) -> list[Change]:
        """Close what is open and has no effect any more: the latest results are where those before it were."""
        return [self._close(one) if one.state in OPEN and self._is_gone(one) else one for one in changes]

    def _is_gone(self, change: Change) -> bool:
        position, seen = self.judged.place_of(change.job_id), len(self.judged.points)
        if position is None or position == 0 or change.kind in ("improvement", "drift"):
            return False
        since = max(position, self.course.begin, seen - _RECENT)
        if seen - since < self.rules.relearning:
            return False
        turned = self.judged.turned
        began = max((one.position for one in self.course.changes if one.position < position), default=0)
        before = turned[max(began, position - self.rules.window) : position]
        left = shift(before, turned[since:]).value
        sign = 1 if (change.effect > 0) == (change.better != "higher") else -1
        return sign * left < math.log1p(self.rules.least) / 2

    def _close(self, change: Change) -> Change:
        told = "the latest results are back at the level before the change, so it is closed"
        closed = change.model_copy(update={"state": ChangeState.RESOLVED, "path": (*change.path, told)})
        return restate_change(closed)

    def _beside(self, position: int, began: int, until: int) -> dict[str, float]:
        """Return how the other metrics moved across the same border, by their medians."""
        points = self.judged.points
        found = {}
        for key in sorted(points[position].values.keys() - {self.series.metric}):
            sides = [
                [value for point in part if (value := point.values.get(key)) is not None and value > 0]
                for part in (points[max(began, position - self.rules.window) : position], points[position:until])
            ]
            if all(sides):
                found[key] = float(np.median(sides[1]) / np.median(sides[0])) - 1
        return found


def _kind(finding: Finding, why: Causes) -> ChangeKind:
    if finding.kind == "drift":
        return "drift"
    return "environment" if why.is_of_the_machine or finding.is_machine else finding.kind


def _relative(end: float | None) -> float | None:
    return None if end is None else math.expm1(end)


def _name(series_id: str, metric: str, job_id: str) -> str:
    return "c" + hashlib.sha256(f"{series_id}/{metric}/{job_id}".encode()).hexdigest()[:11]


def _noise(before: Array, runs: int, correlated: float) -> SeriesNoise:
    cv = robust_cv(before)
    if cv is None:
        return SeriesNoise()
    grade: Literal["quiet", "normal", "noisy", "unusable"]
    grade = "quiet" if cv < 0.01 else "normal" if cv < 0.03 else "noisy" if cv < 0.08 else "unusable"
    return SeriesNoise(cv=cv, grade=grade, correlation=correlated, sees=detectable_shift(cv, max(1, runs)))


_CANARY_PATHS = {
    False: "corrected for the speed of the machine, by the {} canary",
    True: "the {} canary moved with it, so the machine changed",
}


def _path(finding: Finding) -> tuple[str, ...]:
    if math.isnan(finding.p):
        return (f"one result {finding.strength:.1f} deviations from those before",)
    seen = (SEEN_BEFORE,) if finding.seen_before else ()
    canary: tuple[str, ...] = ()
    if finding.canary is not None:
        canary = (_CANARY_PATHS[finding.is_machine].format(name_without_unit(finding.canary)),)
    drift = ("a straight line fits better than a step",) if finding.kind == "drift" else ()
    return (
        f"split of strength {abs(finding.strength):.1f}",
        f"p = {finding.p:.2g} by shuffling",
        *seen,
        *drift,
        *canary,
    )


@dataclass(frozen=True)
class _Fresh:
    """A change as it is found now, the place of its first result, and of the last that it took to notice it."""

    change: Change
    place: int
    at: int


@dataclass(frozen=True)
class _Matcher:
    """Find out which changes were known before; `until`: when the last result was measured that was judged by then."""

    judged: JudgedNumbers
    until: datetime | None

    def match(self, fresh: Sequence[_Fresh], known: Sequence[Change]) -> list[Change]:
        """Give each change the name that it had, and what was decided; keep what was decided of one no longer seen."""
        pairs = self._pairs(fresh, known)
        matched = {new: _keep_decision(known[old], fresh[new].change) for new, old in pairs.items()}
        left = [one for old, one in enumerate(known) if old not in pairs.values()]
        kept = [one for one in left if one.state in _DECIDED or one.state is ChangeState.RESOLVED]
        taken = {one.id for one in (*matched.values(), *kept)}
        found = []
        for new, one in enumerate(fresh):
            change = matched[new] if new in matched else _ask_again(one.change, taken)
            taken.add(change.id)
            found.append(change)
        return found + kept

    def _pairs(self, fresh: Sequence[_Fresh], known: Sequence[Change]) -> dict[int, int]:
        """Return which of the known changes each one is, by their numbers; the nearest have the first choice."""
        near = [
            (distance, new, old)
            for new, one in enumerate(fresh)
            for old, before in enumerate(known)
            if (distance := self._distance(before, one)) is not None
        ]
        pairs: dict[int, int] = {}
        for _, new, old in sorted(near):
            if new not in pairs and old not in pairs.values():
                pairs[new] = old
        return pairs

    def _distance(self, old: Change, fresh: _Fresh) -> int | None:
        """Return how far apart the places of two findings are; None where they are not the same change."""
        new, known_at = fresh.change, self.judged.place_of(old.job_id)
        if known_at is None or (old.kind == "drift") != (new.kind == "drift"):
            return None
        if old.state is ChangeState.RESOLVED and old.job_id != new.job_id:
            return None
        if old.kind != "drift":
            is_same_way = (old.effect > 0) == (new.effect > 0)
            if not (is_same_way and self._is_near(known_at, fresh.place) and self._was_there(old, fresh)):
                return None
        return abs(known_at - fresh.place)

    def _is_near(self, old: int, new: int) -> bool:
        """Say whether two places are one for what was known before.

        Results in between that came since tell better where a change began, and make no other of it. What has no known
        result before it, or none after it, is another: nobody could see it then.
        """
        low, high = sorted((old, new))
        if high - low <= NEAR or self.until is None:
            return high - low <= NEAR
        known = [point.measured_at <= self.until for point in self.judged.points]
        return any(known[:new]) and any(known[new:]) and sum(known[low:high]) <= NEAR

    def _was_there(self, old: Change, fresh: _Fresh) -> bool:
        """Say whether a change could be noticed by the time of a decision, which says nothing of what came later."""
        known = _known_behind(fresh.place, old, self.judged) if old.state in _DECIDED else None
        return known is None or known > fresh.at - fresh.place


def _keep_decision(before: Change, change: Change) -> Change:
    """Return a change that was known before, with its name and what was decided of it."""
    kept = {"id": before.id, "noticed_at": before.noticed_at, "acknowledgement": before.acknowledgement}
    kept |= {"decided_after": before.decided_after}
    state = before.state if before.state in (*_DECIDED, ChangeState.RESOLVED) else change.state
    path = change.path + tuple(step for step in before.path if step.startswith(BY_RUNS))
    return restate_change(change.model_copy(update=kept | {"state": state, "path": path}))


def _ask_again(change: Change, taken: Set[str]) -> Change:
    """Name a change; where another began with the same result, which was decided or is dated better now, anew."""
    number, found = 0, change.id
    while found in taken:
        number, asked = number + 1, f"{change.job_id}/{change.noticed_at}"
        found = _name(change.series_id, change.metric, asked if number == 1 else f"{asked}/{number}")
    return change.model_copy(update={"id": found})


def _mark_resolved(changes: Sequence[Change], rules: Rules) -> list[Change]:
    """Mark what is over: the level came back to where it was before."""
    found = list(changes)
    for index, change in enumerate(changes):
        later = [one for one in changes[index + 1 :] if one.state not in (ChangeState.SUSPECT, ChangeState.REJECTED)]
        if change.state not in OPEN or change.kind == "improvement":
            continue
        # It stays over when it returns: that is a change of its own.
        if any(not rules.is_large(math.log(one.after.median / change.before.median)) for one in later):
            found[index] = restate_change(change.model_copy(update={"state": ChangeState.RESOLVED}))
    return found


def _standing(
    series: Series, judged: JudgedNumbers, course: LevelTrack, changes: Sequence[Change], rules: Rules
) -> Series:
    learned, wanted = course.seen - course.begin, course.runs_needed(rules)
    return series.model_copy(
        update={
            "state": _state_of(changes, learned, wanted, rules),
            "learned": min(learned, wanted),
            "wanted": wanted,
            "runs": len(judged.points),
            "last_at": max((point.measured_at for point in judged.points), default=None),
            "last_value": float(judged.values[-1]) if judged.points else None,
            "last_grade": judged.points[-1].grade if judged.points else None,
            "note": judged.note,
        }
    )


def _state_of(changes: Sequence[Change], learned: int, wanted: int, rules: Rules) -> SeriesState:
    sure = [one for one in changes if one.state in (ChangeState.FOUND, ChangeState.CONFIRMED)]
    for kind in ("regression", "environment", "drift"):
        if any(one.kind == kind for one in sure):
            return SeriesState(kind)
    if any(one.state is ChangeState.SUSPECT for one in changes):
        return SeriesState.SUSPECT
    if sure and sure[-1] is changes[-1] and sure[-1].kind == "improvement" and learned < rules.learning:
        return SeriesState.IMPROVEMENT
    return SeriesState.LEARNING if learned < wanted else SeriesState.STEADY
