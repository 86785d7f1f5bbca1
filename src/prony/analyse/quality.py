"""Score the answers that a job kept, and add to its summary one number an item, with intervals over items.

What was answered does not depend on how busy the machine was: answers of all runs count. An item that was answered
several times has the mean of its scores, and intervals come from the spread between items, not between runs: greedy
runs answer alike and would seem to leave no doubt at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prony.instruments.kept_answers import WholeAnswer, read_answers, read_scores
from prony.model.estimate import Estimate, Summary
from prony.model.metric import METRICS, key_of, key_text
from prony.ports.driver import ScoresAnswers, Task
from prony.stats.bootstrap import RESAMPLES, SEED, bootstrap_mean
from prony.stats.intervals import rate_interval

_OWN = "own_score"
_PLAIN = "score"  # what a scorer calls a number that has no other name


@dataclass(frozen=True)
class ScoredAnswers:
    """The whole answers of a job, and by key of an estimate one number for each of them, None where it has none."""

    answers: tuple[WholeAnswer, ...]
    unanswered: int
    scores: Mapping[str, tuple[float | None, ...]]

    def by_item(self, key: str) -> dict[str, float]:
        """Return the mean score of each item, in the order of their names."""
        found: dict[str, list[float]] = {}
        for one, score in zip(self.answers, self.scores[key], strict=True):
            if score is not None:
                found.setdefault(one.item, []).append(score)
        return {item: _mean(scores) for item, scores in sorted(found.items())}

    def by_run(self, key: str) -> tuple[float, ...]:
        """Return the mean over the items of each run, in the order of the runs."""
        runs: dict[int, dict[str, list[float]]] = {}
        for one, score in zip(self.answers, self.scores[key], strict=True):
            if score is not None:
                runs.setdefault(one.repetition, {}).setdefault(one.item, []).append(score)
        return tuple(_mean([_mean(scores) for scores in items.values()]) for _, items in sorted(runs.items()))


def score_folder(folder: Path, task: ScoresAnswers, options: Any) -> ScoredAnswers | None:
    """Score the answers in a result folder; None where it keeps none."""
    every = read_answers(folder)
    if not every:
        return None
    whole = tuple(one for one in every if one.is_whole)
    scores = {
        key_text(metric, "mean"): tuple(numbers)
        for metric, numbers in task.score(options, [one.answer for one in whole]).items()
    }
    return ScoredAnswers(whole, len(every) - len(whole), {**scores, **_own_scores(folder, whole)})


def add_task_scores(summary: Summary, folder: Path, task: Task, options: Any) -> Summary:
    """Return the summary with the scores of the kept answers, where the task scores and there are any."""
    if not isinstance(task, ScoresAnswers):
        return summary
    scored = score_folder(folder, task, options)
    return summary if scored is None else add_quality(summary, scored, task.scoring(options))


def add_quality(summary: Summary, scored: ScoredAnswers, how: str) -> Summary:
    """Return the summary with what the scores say; `how` they are made stands in the method of each."""
    estimates, items, runs = dict(summary.estimates), dict(summary.items), dict(summary.runs)
    for key in scored.scores:
        values = scored.by_item(key)
        if values:
            by = "your own scorer" if key_of(key).metric == _OWN else how
            estimates[key] = _estimate(list(values.values()), by, METRICS[key_of(key).metric].unit)
            items[key], runs[key] = values, scored.by_run(key)
    if (cut := _cut_share(scored.answers)) is not None:
        estimates["cut_share.mean"] = cut
    return summary.model_copy(update={"estimates": estimates, "items": items, "runs": runs})


def _own_scores(folder: Path, whole: Sequence[WholeAnswer]) -> dict[str, tuple[float | None, ...]]:
    """Return what the user's own scorer said, each number under its name."""
    told = read_scores(folder)
    names = dict.fromkeys(name for scores in told.values() for name in scores)
    each = [told.get((one.repetition, one.round, one.item), {}) for one in whole]
    return {
        key_text(_OWN, "mean", "" if name == _PLAIN else name): tuple(scores.get(name) for scores in each)
        for name in names
    }


def _estimate(values: Sequence[float], how: str, unit: str) -> Estimate:
    found = bootstrap_mean(np.asarray(values, dtype=np.float64))
    drawn = f"; BCa bootstrap of {RESAMPLES:,} draws of items, seed {SEED}" if found.low is not None else ""
    return Estimate(
        value=found.value, unit=unit, low=found.low, high=found.high,
        confidence=None if found.low is None else 0.95, count=len(values), level="sample",
        method=f"mean of {len(values)} items; {how}{drawn}",
    )  # fmt: skip


def _cut_share(answers: Sequence[WholeAnswer]) -> Estimate | None:
    """Return the share of answers that the limit on their tokens cut; None where no server said why one ended."""
    told = [one for one in answers if any(part.finish for part in one.parts)]
    cut = sum(one.is_cut for one in told)
    interval = rate_interval(cut, len(told))
    if interval is None:
        return None
    return Estimate(
        value=cut / len(told), unit="1", low=interval[0], high=interval[1], confidence=0.95, count=len(told),
        level="sample", method=f"{cut} of {len(told)} answers; Wilson",
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
