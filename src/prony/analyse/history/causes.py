"""Find what else changed at a change point, and whether the machine rather than the code moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from prony.analyse.wording import plain_number
from prony.model.calibration import Calibration
from prony.model.estimate import Estimate
from prony.model.history import Point

# Facts of a point that belong to the machine: where one of these changed, the code is not blamed.
OF_THE_MACHINE = ("os version", "kernel", "libc", "microcode", "GPU driver")
COMMIT = "commit"
CANARY = "kernel_ms"
# A change may lie a run or two from where it was located.
_AROUND = 2
_DIGITS = 10


@dataclass(frozen=True)
class Causes:
    told: tuple[str, ...] = ()
    is_of_the_machine: bool = False
    commits: tuple[str | None, str | None] = (None, None)


def causes(points: Sequence[Point], position: int, effect: float, canary: Sequence[Calibration] = ()) -> Causes:
    """Say what differs across the change at `position`; `effect` is its relative size, by which a canary is judged."""
    low, high = max(0, position - _AROUND), min(len(points), position + _AROUND)
    around = points[low:high]
    told: dict[str, str] = {}
    is_machine = False
    for earlier, later in pairwise(around):
        for key in sorted(earlier.facts.keys() | later.facts.keys()):
            old, new = earlier.facts.get(key), later.facts.get(key)
            if old != new and old is not None and new is not None:
                told[key] = f"{key} from {_short(key, old)} to {_short(key, new)}"
                is_machine |= key in OF_THE_MACHINE
    # The results before a change may have been measured after those behind it.
    good, last = sorted((points[max(0, position - 1)].measured_at, points[-1].measured_at))
    sung = canary_moved(canary, good, last, effect)
    if sung:
        told["canary"] = sung
    before, after = points[max(0, position - 1)], points[position]
    commits = (before.facts.get(COMMIT), after.facts.get(COMMIT))
    return Causes(tuple(told.values()), is_machine or bool(sung), commits)


def canary_moved(calibrations: Sequence[Calibration], good: datetime, last: datetime, effect: float) -> str:
    """Say whether the machine's fixed kernel moved between two instants, and at least half as far as the series did."""
    # One that others disturbed says nothing of the machine itself.
    ordered = sorted((one for one in calibrations if not one.disturbed), key=lambda one: (one.taken_at, one.id))
    before = [one for one in ordered if one.taken_at <= good and CANARY in one.figures]
    after = [one for one in ordered if good < one.taken_at <= last and CANARY in one.figures]
    if not before or not after:
        return ""
    old, new = before[-1].figures[CANARY], after[-1].figures[CANARY]
    ratio = new.value / old.value if old.value > 0 and new.value > 0 else 1.0
    moved = max(ratio, 1 / ratio) - 1
    if moved < max(0.01, abs(effect) / 2) or not _apart(old, new):
        return ""
    return f"canary {CANARY} from {plain_number(old.value)} to {plain_number(new.value)} {old.unit}"


def _apart(old: Estimate, new: Estimate) -> bool:
    """Do two intervals have nothing in common?"""
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return False
    return old.high < new.low or new.high < old.low


def _short(key: str, value: str) -> str:
    return value[:_DIGITS] if key in (COMMIT, "model") else shorten_digest(value)


def shorten_digest(value: str) -> str:
    """Return a value with the first digits of the digest that it ends with, where it does."""
    name, kind, digits = value.rpartition("sha256:")
    return f"{name}{kind}{digits[:_DIGITS]}" if kind else value
