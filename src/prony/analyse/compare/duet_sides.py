"""Assemble the two sides of a duet from the runs of its entries.

Where enough pairs are left of which both runs counted, both sides keep only these, so that the runs with one index were
made together; else each keeps all of its own, and they are compared as two sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from prony.analyse.compare.effect import FEWEST_PAIRS
from prony.analyse.compare.matching import Side
from prony.analyse.estimates import across_runs
from prony.analyse.verdict import verdict_of
from prony.model.estimate import Estimate, Grade, Summary, Verdict, metric_in
from prony.model.experiment_data import Entry
from prony.model.workload import Scalar

_DISTURBED = "contaminated"
# What is said of a job with one run because it has one, and is untrue of all runs of a side together.
_OF_ONE_RUN = ("one_run", "few_runs", "wide_interval", "blind")

Runs = dict[int, tuple[Entry, int]]  # by pair: the entry that has it, and its place among that entry's runs


def is_duet(entries: Sequence[Entry]) -> bool:
    return any(entry.job.side is not None for entry in entries)


def duet_sides(side: Side) -> tuple[tuple[Side, Side], tuple[str, ...]]:
    """Return both sides of a duet, side a as the baseline, and the paths in which they differ."""
    first = [entry for entry in side.entries if entry.job.side == "a"]
    second = [entry for entry in side.entries if entry.job.side == "b"]
    paths = _unlike(first, second)
    before, after = _by_cell(first, paths), _by_cell(second, paths)
    made: dict[str, list[Entry]] = {"a": [], "b": []}
    for cell in dict.fromkeys((*before, *after)):
        runs = _runs(before.get(cell, ())), _runs(after.get(cell, ()))
        common = sorted(runs[0].keys() & runs[1].keys())
        is_paired = len(common) >= FEWEST_PAIRS
        for name, entries, mine in (("a", before.get(cell), runs[0]), ("b", after.get(cell), runs[1])):
            if entries:
                made[name].append(_together(entries, mine, common if is_paired else sorted(mine)))
    return (
        Side(f"{side.name} side a", tuple(made["a"])),
        Side(f"{side.name} side b", tuple(made["b"])),
    ), paths


def _unlike(first: Sequence[Entry], second: Sequence[Entry]) -> tuple[str, ...]:
    """Return the paths whose values are not the same on both sides."""
    paths = dict.fromkeys(path for entry in (*first, *second) for path in entry.job.cell)
    return tuple(path for path in paths if _values(first, path) != _values(second, path))


def _values(entries: Sequence[Entry], path: str) -> set[tuple[bool, Scalar | None]]:
    found = (entry.job.cell.get(path) for entry in entries)
    return {(isinstance(value, bool), value) for value in found}


def _by_cell(entries: Sequence[Entry], without: Sequence[str]) -> Mapping[str, Sequence[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        cell = sorted((path, str(value)) for path, value in entry.job.cell.items() if path not in without)
        groups.setdefault(str(cell), []).append(entry)
    return groups


def _runs(entries: Sequence[Entry]) -> Runs:
    """Return where the run of each pair is: each entry has one, or one entry has them all."""
    return {
        (entry.job.pair if entry.job.pair is not None else number): (entry, place)
        for entry in entries
        for place, number in enumerate(entry.summary.used)
    }


def _together(entries: Sequence[Entry], runs: Runs, pairs: Sequence[int]) -> Entry:
    """Return one entry that stands for all of a side, with its runs of these pairs in their order."""
    first = entries[0]
    wanted = [runs[pair] for pair in pairs]
    keys = [key for key in first.summary.runs if all(_has(entry.summary, key) for entry, _ in wanted)]
    values = {key: tuple(entry.summary.runs[key][place] for entry, place in wanted) for key in keys if wanted}
    summary = first.summary.model_copy(
        update={
            "runs": values or first.summary.runs,
            "counts": _counts(entries),
            "run_counts": _run_counts(entries),
            "estimates": first.summary.estimates | _estimates(values, first.summary),
            "used": tuple(pairs),
            "verdict": _verdict(entries),
        }
    )
    started = min(entry.result.started_at for entry in entries)
    ends = [entry.result.ended_at for entry in entries if entry.result.ended_at is not None]
    result = first.result.model_copy(update={"started_at": started, "ended_at": max(ends, default=None)})
    job = first.job.model_copy(update={"pair": None})
    return first.model_copy(update={"job": job, "summary": summary, "result": result})


def _has(summary: Summary, key: str) -> bool:
    """Has it one number for each run that counts? A cold start may have more, or fewer."""
    return len(summary.runs.get(key, ())) == len(summary.used)


def _estimates(runs: Mapping[str, Sequence[float]], summary: Summary) -> dict[str, Estimate]:
    return {key: across_runs(np.array(values), metric_in(summary, key).unit, "runs") for key, values in runs.items()}


def _counts(entries: Sequence[Entry]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for entry in entries:
        for key, (failed, total) in entry.summary.counts.items():
            before = found.get(key, (0, 0))
            found[key] = (before[0] + failed, before[1] + total)
    return found


def _run_counts(entries: Sequence[Entry]) -> dict[str, tuple[tuple[int, int], ...]]:
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for entry in entries:
        for key, counts in entry.summary.run_counts.items():
            found[key] = (*found.get(key, ()), *counts)
    return found


def _verdict(entries: Sequence[Entry]) -> Verdict:
    """Return the worst that is said of any run, without what is untrue of all of them together.

    What other programs did forbids to quote a number, but not to compare two that took turns under it.
    """
    reasons = {
        (one.code, one.grade): one if one.code != _DISTURBED else one.model_copy(update={"grade": Grade.SUSPECT})
        for entry in entries
        for one in entry.summary.verdict.reasons
        if len(entries) == 1 or one.code not in _OF_ONE_RUN
    }
    return verdict_of(reasons.values())
