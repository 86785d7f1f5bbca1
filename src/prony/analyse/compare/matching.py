"""Pair the jobs to be compared, and list those without a partner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.analyse.compare.differences import is_across
from prony.errors import InputError
from prony.model.experiment_data import Entry


@dataclass(frozen=True)
class Side:
    """What a person named, an experiment or one job of it, and the entries that it has."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Matched:
    pairs: tuple[tuple[Entry, Entry], ...]
    unmatched: tuple[str, ...]


def match(sides: Sequence[Side], across: Sequence[str]) -> Matched:
    """Pair the jobs of the first side with those of each other; of one side alone, its jobs along `across`."""
    for side in sides:
        if not side.entries:
            raise InputError(f"{side.name} has no result yet", hint="`prony watch ID` waits", code="no_result")
    if len(sides) == 1:
        return _inside(sides[0], across)
    pairs: list[tuple[Entry, Entry]] = []
    alone: list[str] = []
    for other in sides[1:]:
        found = _between(sides[0], other, across)
        pairs += found.pairs
        alone += found.unmatched
    if not pairs:
        raise InputError(
            f"no job of {sides[0].name} has a partner: {'; '.join(alone)}",
            hint="jobs are matched by their cells; --across NAME lets a setting differ, or name two jobs",
            code="not_comparable",
        )
    return Matched(tuple(pairs), tuple(alone))


def _between(first: Side, second: Side, across: Sequence[str]) -> Matched:
    if len(first.entries) == len(second.entries) == 1:  # whatever differs between them is told
        return Matched(((first.entries[0], second.entries[0]),), ())
    before, after = _by_cell(first, across), _by_cell(second, across)
    pairs = tuple((entry, after[cell]) for cell, entry in before.items() if cell in after)
    alone = [f"{entry.job.title} is only in {first.name}" for cell, entry in before.items() if cell not in after]
    alone += [f"{entry.job.title} is only in {second.name}" for cell, entry in after.items() if cell not in before]
    return Matched(pairs, tuple(alone))


def _inside(side: Side, across: Sequence[str]) -> Matched:
    if not across:
        raise InputError(
            f"only {side.name} is named",
            hint="name a second experiment or job, or what differs inside: --across engine",
        )
    groups: dict[str, list[Entry]] = {}
    for entry in side.entries:
        groups.setdefault(_cell(entry, across), []).append(entry)
    pairs = tuple((group[0], other) for group in groups.values() for other in group[1:])
    alone = tuple(f"{group[0].job.title} has no partner" for group in groups.values() if len(group) == 1)
    if not pairs:
        raise InputError(
            f"no two jobs of {side.name} differ in {' and '.join(across)} alone", code="not_comparable",
            hint="`prony show` lists its jobs",
        )  # fmt: skip
    return Matched(pairs, alone)


def _by_cell(side: Side, across: Sequence[str]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in side.entries:
        cell = _cell(entry, across)
        if cell in found:
            raise InputError(
                f"{side.name} has several jobs that are the same but for {' and '.join(across)}",
                hint=f"name one: {found[cell].job.id} or {entry.job.id}", code="ambiguous",
            )  # fmt: skip
        found[cell] = entry
    return found


def _cell(entry: Entry, across: Sequence[str]) -> str:
    kept = {path: value for path, value in entry.job.cell.items() if not is_across(path, across)}
    return ", ".join(f"{path}={value}" for path, value in sorted(kept.items()))
