"""Entries in, who may be compared with whom and what may be said of them out: never more than the intervals allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prony.model.estimate import Estimate, Grade
from prony.model.experiment_data import Entry
from prony.model.recipe import ModelWorkload
from prony.model.script import ScriptWorkload
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
    """Return groups whose times mean the same work: one model, one batch size, one set of inputs; or one load.

    What a script's numbers mean, nobody knows but its writer.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        work = entry.job.workload
        if isinstance(work, ScriptWorkload):
            continue
        if isinstance(work, ModelWorkload):
            key = f"{work.model}\n{work.checksum}\n{work.batch_size}\n{work.inputs.model_dump_json()}"
        else:  # a load is another one where anything of it differs but where it goes
            key = work.model_dump_json(exclude={"endpoint", "service", "settings"}) + entry.job.load.model_dump_json()
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def quotable(entry: Entry, key: str = "") -> Estimate | None:
    """Return the number (the job's headline unless told) where it may stand in a comparison: it exists and its verdict
    is not void."""
    if entry.summary.verdict.grade is Grade.VOID:
        return None
    found = entry_fields.estimate(entry.summary, key or entry_fields.headline(entry))
    return found if found is not None and found.value > 0 else None


def fastest(group: Sequence[Entry]) -> Entry | None:
    """Return the job with the lowest median; None where nobody has a number that may be quoted."""
    timed = [(found.value, place) for place, one in enumerate(group) if (found := quotable(one)) is not None]
    return group[min(timed)[1]] if timed else None


def against(first: Estimate, other: Estimate) -> Ratio:
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
    return against(ours, theirs)
