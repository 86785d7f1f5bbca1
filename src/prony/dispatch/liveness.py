"""Decide which leases and agents have fallen silent, by whether their beats move from one look to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# An agent that waits speaks once in a lease's life. After so many it is not read any more, and then it is lost.
_QUIET_AFTER, _LOST_AFTER = 2, 3
# Looks that lie further apart than so many of their intervals were not made in time.
_LATE_LOOKS = 3


class Pulse(NamedTuple):
    """The beat that a look found, and when it last moved, by the monotonic clock of whoever looks."""

    beat: int
    moved_at: float


def take_pulse(before: Pulse | None, beat: int, *, now: float, heard_at: float | None) -> Pulse:
    """Return the pulse of what was just looked at; one that is seen for the first time lives.

    Args:
        before: What the last look found.
        beat: What the database says now.
        now: When this look is.
        heard_at: When whoever looks heard of it without the database.
    """
    moved_at = now if before is None or before.beat != beat else before.moved_at
    return Pulse(beat, moved_at if heard_at is None else max(moved_at, heard_at))


def has_moved(before: Pulse | None, beat: int) -> bool:
    """Has it beaten since the last look? Of what was never looked at nobody knows."""
    return before is not None and before.beat != beat


def forgive_gap(pulses: Mapping[str, Pulse], gap_s: float, interval_s: float) -> dict[str, Pulse]:
    """Return the pulses without the time in which nobody looked, where the last look was too long ago."""
    if gap_s <= _LATE_LOOKS * interval_s:
        return dict(pulses)
    return {key: Pulse(one.beat, one.moved_at + gap_s) for key, one in pulses.items()}


def is_silent(pulse: Pulse, now: float, longest_s: float) -> bool:
    """Has it not moved for longer than this?"""
    return now - pulse.moved_at > longest_s


def quiet_after_s(ttl_s: float) -> float:
    """Return how long an agent may be silent before its metrics are not read any more."""
    return _QUIET_AFTER * ttl_s


def lost_after_s(ttl_s: float) -> float:
    """Return how long an agent may be silent before it is lost."""
    return _LOST_AFTER * ttl_s
