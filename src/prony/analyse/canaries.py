"""Tell a slower machine from a slower program by the canary beside each repetition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from prony.analyse.verdict import Evidence, note, percent, suspect
from prony.model.comparison import MachineChange
from prony.model.estimate import Reason
from prony.model.experiment_data import Entry
from prony.model.result import Repetition

_WORDS = {
    "compute_ms": "processor", "memory_ms": "memory", "gpu_compute_ms": "GPU", "gpu_memory_ms": "GPU's memory",
}  # fmt: skip
NAMES = tuple(_WORDS)
# By how much slower than the usual repetition of the job one is told, and one makes the job suspect.
_TOLD, _SUSPECT = 0.10, 0.25
_FEWEST = 3
# The least difference between two sides that is taken for one of the machine.
_CHANGED = 0.03


def canary_values(repetitions: Iterable[Repetition], name: str) -> list[float]:
    """Return one number a repetition: the mean of before and after, as far as there are any."""
    found = []
    for one in repetitions:
        told = [getattr(reading, name) for reading in (one.canary_before, one.canary_after) if reading is not None]
        if known := [value for value in told if value is not None]:
            found.append(sum(known) / len(known))
    return found


def canary_medians(repetitions: Iterable[Repetition]) -> dict[str, float]:
    """Return how fast the machine was beside these repetitions, for whoever looks at it over time."""
    kept = list(repetitions)
    return {name: median(values) for name in NAMES if (values := canary_values(kept, name))}


def check_canary(evidence: Evidence) -> Iterator[Reason]:
    """A repetition during which the machine itself was slower than beside the others says less of the program."""
    read = {name: canary_values(evidence.selection.used, name) for name in NAMES}
    slower = {
        name: worst
        for name, values in read.items()
        if len(values) >= _FEWEST and (worst := max(values) / median(values) - 1) > _TOLD
    }
    if not slower:
        return
    worst = max(slower.values())
    first, *others = [
        (_WORDS[name], f"{max(read[name]):.3g} ms instead of {median(read[name]):.3g} ms")
        for name in sorted(slower, key=lambda name: -slower[name])
    ]
    works = ", and ".join(
        [f"for the {first[0]} took {first[1]}", *(f"one for the {part} {took}" for part, took in others)]
    )
    text = (
        f"The machine itself was up to {percent(worst)} slower during one of these runs than during most: a fixed "
        f"piece of work {works}. Measure again on a quiet machine."
    )
    yield suspect("machine_slower", text) if worst > _SUSPECT else note("machine_slower", text)


def machine_change(baseline: Entry, candidate: Entry) -> MachineChange | None:
    """Say whether the machine itself was faster or slower on one side; None where a side has no canary."""
    ratios: dict[str, float] = {}
    told: list[str] = []
    for name in NAMES:
        old, new = (_of(entry, name) for entry in (baseline, candidate))
        if not old or not new:
            continue
        ratio = ratios[name] = median(new) / median(old)
        is_apart = min(new) > max(old) or max(new) < min(old)
        if max(ratio, 1 / ratio) - 1 > _CHANGED and is_apart and min(len(old), len(new)) >= _FEWEST:
            told.append(
                f"a fixed piece of work for the {_WORDS[name]} took {median(new):.3g} ms beside the candidate and "
                f"{median(old):.3g} ms beside the baseline, {percent(abs(ratio - 1))} "
                f"{'slower' if ratio > 1 else 'faster'}"
            )
    if not ratios:
        return None
    sentence = f"The machine itself changed: {'; '.join(told)}." if told else "The machine itself did not change."
    return MachineChange(ratios=ratios, changed=bool(told), sentence=sentence)


def _of(entry: Entry, name: str) -> list[float]:
    used = set(entry.summary.used)
    return canary_values((one for one in entry.result.repetitions if one.index in used), name)
