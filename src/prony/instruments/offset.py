"""Estimate the offset between two clocks and its uncertainty from round trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.errors import MeasurementError
from prony.model.gang import Offset


@dataclass(frozen=True)
class Trip:
    """A question and its answer: `sent_ns` and `back_ns` by our clock, what lies between by the other's."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    back_ns: int

    @property
    def on_the_way_ns(self) -> int:
        return (self.back_ns - self.sent_ns) - (self.answered_ns - self.received_ns)


def offset_of(trips: Sequence[Trip]) -> Offset:
    """Return the offset by the trip that was shortest on its way: the others only waited longer somewhere.

    Whatever share of the way the question took, the truth lies within half of it.
    """
    known = [trip for trip in trips if trip.on_the_way_ns >= 0]
    if not known:
        raise MeasurementError("no clock could be read", hint="does the server answer?", code="no_clock")
    best = min(known, key=lambda trip: trip.on_the_way_ns)
    twice = (best.received_ns - best.sent_ns) + (best.answered_ns - best.back_ns)
    return Offset(offset_ns=twice // 2, uncertainty_ns=(best.on_the_way_ns + 1) // 2 + 1)
