"""A history in, the alerts that a method raises when it is asked after every run out: Prony's, and its peers'."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.detection_series import FIRST, History, canary_of
from benchmarks.load_install import folder, is_ready
from benchmarks.noise_families import Machine, more_runs
from prony.analyse.history.confirmation import (
    MORE,
    PAIRS,
    Repeats,
    judge_pairs,
    judge_repeats,
    last_good,
    was_spike,
)
from prony.analyse.history.detect import Rules
from prony.analyse.history.level_track import NEAR, Decision, LevelTrack, NoticedChange, follow_levels
from prony.analyse.history.machine_record import MachineRecord, record_before
from prony.analyse.history.machine_speed import MachineSpeeds
from prony.stats.changes import robust_sd
from prony.stats.quantiles import Array

RULES = Rules()
# The time between two runs in a row, in parts of the time between two runs of the history.
_IN_A_ROW = 0.02


@dataclass(frozen=True)
class Alert:
    """Told after run `noticed` that from run `located` on the program is slower, or faster."""

    noticed: int
    located: int
    is_worse: bool


@dataclass(frozen=True)
class Answer:
    """`extra` counts the runs that a method asked for itself."""

    alerts: tuple[Alert, ...]
    cpu_s: float
    extra: int = 0


@dataclass(frozen=True)
class Setting:
    """How the product is used: what decides a suspicion, and how much of the machine its canary shows.

    `gap`: of repetitions, the time between two in parts of the time between two runs of the history.
    """

    confirms: Literal["history", "turns", "repeats"] = "history"
    sight: float | None = None
    gap: float = 1 / PAIRS


def judge_as_product(setting: Setting, history: History, rules: Rules = RULES) -> Answer:
    """Ask the product after each run; tell what it would tell a person."""
    return _Judge(setting, history, rules).answer()


def _sure_positions(course: LevelTrack) -> set[int]:
    return {one.position for one in course.changes if not one.finding.seen_before}


class _Judge:
    """The product, asked after each run of one history."""

    def __init__(self, setting: Setting, history: History, rules: Rules) -> None:
        self.setting, self.history, self.rules = setting, history, rules
        self.values = np.log(history.values)
        self.speeds = _speeds(history.canary(setting.sight))
        self.rng = np.random.default_rng((*history.seed, 1))
        self.decisions: list[Decision] = []
        self.left_open: list[int] = []
        self.alerts: list[Alert] = []
        self.extra = 0

    def answer(self) -> Answer:
        course, spent = LevelTrack(seen=FIRST - 1), 0.0
        for end in range(FIRST, self.values.size + 1):
            begin = time.process_time()
            fresh = follow_levels(self.values[:end], self.rules, course, self.decisions, self.speeds)
            spent += time.process_time() - begin
            course = self._next(course, fresh, end)
        return Answer(tuple(self.alerts), spent, self.extra)

    def _next(self, course: LevelTrack, fresh: LevelTrack, end: int) -> LevelTrack:
        fresh_ones = _sure_positions(fresh) - _sure_positions(course)
        told = next((one for one in reversed(fresh.changes) if one.position in fresh_ones), None)
        if self.setting.confirms == "history":
            self._tell(told, end) if told is not None else None
            return fresh
        asked = _asked(self.values[:end], course, fresh)
        if asked is None:
            self._tell(told, end) if told is not None and told.finding.shift < 0 else None
            return fresh
        position, is_alone = asked
        # What runs have left open is open without an alarm, and is not asked again.
        is_known = any(abs(one - position) <= NEAR for one in self.left_open)
        said = "left open" if is_known else self._confirm(course, position, end, is_alone=is_alone)
        if said in ("machine", "restless"):
            self.left_open.append(position)
        if said == "unsettled" and told is not None:
            self._tell(told, end)
            return fresh
        if said in ("unsettled", "machine", "restless", "left open", "spike"):
            return replace(course, seen=end) if told is None else fresh
        is_real = said == "confirmed"
        self.decisions.append(Decision(position, end - 1, is_real))
        if is_real:
            self.alerts.append(Alert(end - 1, position, is_worse=True))
        return replace(course, seen=end, begin=position if is_real else course.begin)

    def _tell(self, one: NoticedChange, end: int) -> None:
        self.alerts.append(Alert(end - 1, one.position, one.finding.shift > 0))

    def _confirm(self, course: LevelTrack, position: int, end: int, *, is_alone: bool) -> str:
        runs = _Runs(self.history, end - 1, self.setting, self.rng)
        before = slice(max(course.begin, position - self.rules.window), position)
        if is_alone:
            self.extra += 1
            if was_spike(self.values[before], float(runs.again(1).values[0])):
                return "spike"
        if self.setting.confirms == "turns":
            good = last_good(position, course.begin, is_alone=is_alone)
            differences = runs.turns(good, PAIRS)
            said: str = judge_pairs(differences, self.rules)
            if said == "open":
                differences = np.concatenate((differences, runs.turns(good, MORE)))
                said = judge_pairs(differences, self.rules)
            self.extra += 2 * differences.size
            return said
        old = Repeats(self.values[before], self.speeds.between(before.start, before.stop))
        repeated = runs.again(PAIRS + MORE)
        judge = partial(judge_repeats, old, rules=self.rules, record=self._record(position))
        said = judge(_first(repeated, PAIRS))
        self.extra += PAIRS
        if said == "open":
            said = judge(repeated, is_last=True)
            self.extra += MORE
        return said

    def _record(self, position: int) -> MachineRecord:
        real = [one.position for one in self.decisions if one.is_real and one.position < position]
        return record_before(self.values[:position], self.speeds.between(0, position), real)


def _first(runs: Repeats, count: int) -> Repeats:
    return Repeats(runs.values[:count], runs.speeds.between(0, count))


def _speeds(canary: Array | None) -> MachineSpeeds:
    return MachineSpeeds() if canary is None else MachineSpeeds(("compute_ms",), (canary,))


def _asked(values: Array, before: LevelTrack, fresh: LevelTrack) -> tuple[int, bool] | None:
    """Return which regression is to be confirmed: from which run on, and whether one run alone said so."""
    noticed = fresh.changes[-1] if len(fresh.changes) > len(before.changes) else fresh.suspect
    if noticed is not None and noticed.finding.kind != "drift":
        return (noticed.position, False) if noticed.finding.shift > 0 else None
    return (values.size - 1, True) if fresh.apart is not None and fresh.apart > 0 else None


@dataclass(frozen=True)
class _Runs:
    """Runs that are made for a suspicion after run `last`, on the history's machine as it is then."""

    history: History
    last: int
    setting: Setting
    rng: np.random.Generator

    def again(self, count: int) -> Repeats:
        """Return runs of the version of run `last`, with their canaries."""
        made = self._more(count, self.setting.gap)
        sight = self.setting.sight
        canary = None if sight is None else canary_of(made, sight, self.rng)
        return Repeats(np.log(made.values * self.history.level(self.last)), _speeds(canary))

    def turns(self, good: int, pairs: int) -> Array:
        """Return the logarithms of new over old, of pairs in turn: ABBA, so each comes first as often."""
        factors = self._more(2 * pairs, _IN_A_ROW).values.reshape(pairs, 2)
        turned = np.where((np.arange(pairs) % 2 == 0)[:, None], factors, factors[:, ::-1])
        ratio = self.history.level(self.last) / self.history.level(good)
        found: Array = np.log(turned[:, 1] * ratio / turned[:, 0])
        return found

    def _more(self, count: int, gap: float) -> Machine:
        return more_runs(self.history.family, self.rng, self.history.machine, self.last, count, gap)


# Peers


def _fresh(found: Sequence[tuple[int, int, bool]]) -> tuple[Alert, ...]:
    """Return each alert once: one that lies near an earlier one is the same."""
    kept: list[Alert] = []
    for noticed, located, is_worse in found:
        if not any(abs(one.located - located) <= NEAR and one.is_worse == is_worse for one in kept):
            kept.append(Alert(noticed, located, is_worse))
    return tuple(kept)


def _asked_each_run(judge: Callable[[Array], list[tuple[int, bool]]]) -> Callable[[History], Answer]:
    def method(history: History) -> Answer:
        begin = time.process_time()
        found = [
            (end - 1, located, is_worse)
            for end in range(FIRST, history.values.size + 1)
            for located, is_worse in judge(history.values[:end])
        ]
        spent = time.process_time() - begin
        return Answer(_fresh(found), spent)

    return method


def _fixed(values: Array) -> list[tuple[int, bool]]:
    ratio = values[-1] / values[-2]
    return [(values.size - 1, bool(ratio > 1))] if abs(ratio - 1) > 0.10 else []


def _three_sigma(values: Array) -> list[tuple[int, bool]]:
    earlier = values[-31:-1]
    z = (values[-1] - earlier.mean()) / earlier.std(ddof=1)
    return [(values.size - 1, bool(z > 0))] if abs(z) > 3 else []


def _mann_whitney(values: Array) -> list[tuple[int, bool]]:
    from scipy.stats import mannwhitneyu

    last, earlier = values[-5:], values[-35:-5]
    ratio = np.median(last) / np.median(earlier)
    if abs(ratio - 1) < 0.02 or mannwhitneyu(last, earlier).pvalue >= 0.01:
        return []
    return [(values.size - 5, bool(ratio > 1))]


def _pelt(values: Array) -> list[tuple[int, bool]]:
    import ruptures

    scaled = values / (robust_sd(np.diff(values)) / math.sqrt(2))
    ends = ruptures.KernelCPD("linear", min_size=3).fit(scaled).predict(pen=3 * math.log(values.size))
    borders = [0, *ends]
    levels = [float(values[low:high].mean()) for low, high in pairwise(borders)]
    return [(cut, levels[i + 1] > levels[i]) for i, cut in enumerate(ends[:-1])]


SETTINGS = {
    "history only": Setting(),
    "history only, canary": Setting(sight=1.0),
    "in turns": Setting("turns"),
    "in turns, canary": Setting("turns", sight=1.0),
    "repeated in a row": Setting("repeats", gap=_IN_A_ROW),
    "repeated": Setting("repeats"),
    "repeated, blind canary": Setting("repeats", sight=0.0),
    "repeated, half-blind canary": Setting("repeats", sight=0.5),
    "repeated, canary": Setting("repeats", sight=1.0),
}
ONE_BY_ONE: dict[str, Callable[[History], Answer]] = {
    "fixed 10 % against the run before": _asked_each_run(_fixed),
    "3 sigma of the last 30": _asked_each_run(_three_sigma),
    "Mann-Whitney, 5 against 30": _asked_each_run(_mann_whitney),
    "PELT (ruptures), 3 ln n": _asked_each_run(_pelt),
} | {f"prony, {name}": partial(judge_as_product, setting) for name, setting in SETTINGS.items()}
OTAVA = "apache-otava 0.8.0"


def otava(suite: Sequence[History]) -> list[Answer] | None:
    """Ask otava in its own environment, in one process for all; None where it is not installed."""
    if not is_ready("otava"):
        return None
    script = Path(__file__).with_name("detection_otava.py")
    lines = "\n".join(json.dumps(history.values.tolist()) for history in suite)
    done = subprocess.run(
        [str(folder("otava") / "bin" / "python"), str(script), str(FIRST)],
        input=lines, capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers = []
    for line in done.stdout.splitlines():
        told = json.loads(line)
        answers.append(Answer(_fresh([tuple(one) for one in told["found"]]), told["cpu_s"]))
    return answers
