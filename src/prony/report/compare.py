"""Group comparable jobs and compute ratios to the fastest, never beyond what the intervals allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prony.model.estimate import Estimate, Grade, metric_in
from prony.model.experiment_data import Entry
from prony.model.metric import Better
from prony.ports.workload import shown_kind
from prony.report import entry_fields
from prony.report.number import interval_of

Relation = Literal["fastest", "slower", "overlap", "unknown"]


@dataclass(frozen=True)
class Ratio:
    """How many times as fast the fastest of its peers is as one job; ends from the ends of both intervals."""

    value: float
    low: float | None
    high: float | None
    relation: Relation


def peers(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return groups whose times mean the same work, as their kind of workload says; of some kinds nobody can say it."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        key = shown_kind(entry.job.workload.kind).report.same_work(entry)
        if key is None:
            continue
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def quotable(entry: Entry, key: str = "") -> Estimate | None:
    """Return the number (the job's headline unless told) where it may stand in a comparison: it exists and its verdict
    is not void."""
    if entry.summary.verdict.grade is Grade.VOID:
        return None
    found = entry_fields.find_estimate(entry.summary, key or entry_fields.headline(entry))
    return found if found is not None and found.value > 0 else None


def fastest(group: Sequence[Entry]) -> Entry | None:
    """Return the job with the best median: the lowest time or the highest rate.

    None where no job has a number that may be quoted, or nobody says which end of it is the better one.
    """
    timed = [(found.value, place) for place, one in enumerate(group) if (found := quotable(one)) is not None]
    directions = {better(group[place]) for _, place in timed}
    if directions not in ({"lower"}, {"higher"}):
        return None
    choose = max if directions == {"higher"} else min
    best = choose(value for value, _ in timed)
    return next(group[place] for value, place in timed if value == best)


def better(entry: Entry) -> Better:
    """Say whether a job's headline is better lower, as a time is, or higher, as a rate is."""
    return metric_in(entry.summary, entry_fields.headline(entry)).better


def ratio_to_first(first: Estimate, other: Estimate, *, is_rate: bool = False) -> Ratio:
    """Return how many times as fast the first is as the other, by two times or by two rates."""
    slow, fast = (first, other) if is_rate else (other, first)
    value = slow.value / fast.value
    above, below = interval_of(slow), interval_of(fast)
    if above is None or below is None or below[0] <= 0:
        return Ratio(value, None, None, "unknown")
    relation: Relation = "slower" if above[0] > below[1] else "overlap"
    return Ratio(value, above[0] / below[1], above[1] / below[0], relation)


def ratios(entries: Sequence[Entry]) -> dict[str, Ratio]:
    """Return, by job id, how each job stands against the fastest of its peers; alone, a job has no ratio."""
    found: dict[str, Ratio] = {}
    for group in peers(entries):
        best = fastest(group)
        timed = [one for one in group if quotable(one) is not None]
        if best is None or len(timed) < 2:
            continue
        for one in timed:
            found[one.job.id] = _ratio(best, one)
    return found


def _ratio(best: Entry, one: Entry) -> Ratio:
    ours, theirs = quotable(best), quotable(one)
    if ours is None or theirs is None or one is best:
        return Ratio(1.0, None, None, "fastest")
    return ratio_to_first(ours, theirs, is_rate=better(best) == "higher")
