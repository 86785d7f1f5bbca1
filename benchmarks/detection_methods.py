"""A history in, the alerts that a method raises when it is asked after every run out: Prony's, and its peers'."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.detection_series import FIRST, History
from benchmarks.load_install import folder, is_ready
from benchmarks.noise_families import runs as runs_of
from prony.analyse.history.confirmation import AGAIN, MORE, PAIRS, judge_pairs, last_good
from prony.analyse.history.detect import Rules
from prony.analyse.history.level_track import Decision, LevelTrack, follow_levels
from prony.stats.changes import robust_sd
from prony.stats.quantiles import Array

RULES = Rules()
_NEAR = 5


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


def prony(history: History, rules: Rules = RULES) -> Answer:
    """History only: alerts at the second tier, without a single extra run."""
    begin = time.process_time()
    course = follow_levels(np.log(history.values), rules, LevelTrack(seen=FIRST - 1))
    spent = time.process_time() - begin
    told = [one for one in course.changes if not one.finding.seen_before]
    return Answer(tuple(Alert(one.at, one.position, one.finding.shift > 0) for one in told), spent)


def prony_confirmed(history: History, rules: Rules = RULES) -> Answer:
    """Every suspicion asks for interleaved runs of both versions, and only what these confirm is told."""
    rng = np.random.default_rng((*history.seed, 1))
    values, course, decisions = np.log(history.values), LevelTrack(seen=FIRST - 1), list[Decision]()
    alerts, extra, spent = [], 0, 0.0
    for end in range(FIRST, values.size + 1):
        begin = time.process_time()
        fresh = follow_levels(values[:end], rules, course, decisions)
        spent += time.process_time() - begin
        asked = _asked(values[:end], course, fresh)
        if asked is None:
            course = fresh
            continue
        position, is_worse, is_alone = asked
        run = _Pairs(history, last_good(position, course.begin, is_alone=is_alone), end - 1, rng)
        is_real, runs = run.confirmed(values[:end], rules, is_worse=is_worse, is_alone=is_alone)
        extra += runs
        # A single re-run that is as before ends a suspicion of a single run, and proves nothing about the next.
        decisions += [Decision(position, end - 1, is_real)] if runs > 1 else []
        course = replace(course, seen=end) if not is_real else replace(course, seen=end, begin=position)
        alerts += [Alert(end - 1, position, is_worse)] if is_real else []
    return Answer(tuple(alerts), spent, extra)


def _asked(values: Array, before: LevelTrack, fresh: LevelTrack) -> tuple[int, bool, bool] | None:
    """Return what is to be confirmed: from which run on, in which direction, and whether one run alone said so."""
    noticed = fresh.changes[-1] if len(fresh.changes) > len(before.changes) else fresh.suspect
    if noticed is not None and noticed.finding.kind != "drift":
        return noticed.position, noticed.finding.shift > 0, False
    if fresh.apart is not None:
        return values.size - 1, fresh.apart > 0, True
    return None


@dataclass(frozen=True)
class _Pairs:
    """Runs of the version of run `good` and of the one of run `last`, in turn, on the history's machine."""

    history: History
    good: int
    last: int
    rng: np.random.Generator

    def confirmed(self, values: Array, rules: Rules, *, is_worse: bool, is_alone: bool) -> tuple[bool, int]:
        runs = 0
        if is_alone:
            runs, again = 1, math.log(self._run(1)[0] * self.history.level(self.last))
            earlier = values[-31:-1]
            away = (again - float(np.median(earlier))) * (1 if is_worse else -1)
            if away <= AGAIN * robust_sd(earlier):
                return False, runs
        differences = self._differences(PAIRS)
        told = judge_pairs(differences, rules, worse=is_worse)
        if told == "open":
            differences = np.concatenate((differences, self._differences(MORE)))
            told = judge_pairs(differences, rules, worse=is_worse)
        return told == "confirmed", runs + 2 * differences.size

    def _differences(self, pairs: int) -> Array:
        factors = self._run(2 * pairs).reshape(pairs, 2)
        # ABBA: what comes second in one pair comes first in the next.
        turned = np.where((np.arange(pairs) % 2 == 0)[:, None], factors, factors[:, ::-1])
        ratio = self.history.level(self.last) / self.history.level(self.good)
        found: Array = np.log(turned[:, 1] * ratio / turned[:, 0])
        return found

    def _run(self, count: int) -> Array:
        return runs_of(self.history.family, self.rng, count)


# Peers


def _fresh(found: Sequence[tuple[int, int, bool]]) -> tuple[Alert, ...]:
    """Return each alert once: one that lies near an earlier one is the same."""
    kept: list[Alert] = []
    for noticed, located, is_worse in found:
        if not any(abs(one.located - located) <= _NEAR and one.is_worse == is_worse for one in kept):
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


ONE_BY_ONE: dict[str, Callable[[History], Answer]] = {
    "fixed 10 % against the run before": _asked_each_run(_fixed),
    "3 sigma of the last 30": _asked_each_run(_three_sigma),
    "Mann-Whitney, 5 against 30": _asked_each_run(_mann_whitney),
    "PELT (ruptures), 3 ln n": _asked_each_run(_pelt),
    "prony, history only": prony,
    "prony, with confirmation": prony_confirmed,
}
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
