"""Group comparable jobs and compute ratios to the fastest, never beyond what the intervals allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prony.model.estimate import Estimate, Grade
from prony.model.experiment_data import Entry
from prony.ports.workload import shown_kind
from prony.report import entry_fields
from prony.report.number import interval_of

Relation = Literal["fastest", "slower", "overlap", "unknown"]


@dataclass(frozen=True)
class Ratio:
    """How many times longer one job takes than the fastest of its peers; ends from the ends of both intervals."""

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
    """Return the job with the lowest median; None where nobody has a number that may be quoted."""
    timed = [(found.value, place) for place, one in enumerate(group) if (found := quotable(one)) is not None]
    return group[min(timed)[1]] if timed else None


def ratio_to_first(first: Estimate, other: Estimate) -> Ratio:
    """Return other / first for two times."""
    value = other.value / first.value
    ours, theirs = interval_of(first), interval_of(other)
    if ours is None or theirs is None or ours[0] <= 0:
        return Ratio(value, None, None, "unknown")
    relation: Relation = "slower" if theirs[0] > ours[1] else "overlap"
    return Ratio(value, theirs[0] / ours[1], theirs[1] / ours[0], relation)


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
    return ratio_to_first(ours, theirs)
