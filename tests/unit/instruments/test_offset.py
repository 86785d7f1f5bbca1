"""The offset of a clock is known as well as the way to it is short, and never better than it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import MeasurementError
from prony.instruments.clock import Trip, offset_of

WAYS = st.integers(min_value=0, max_value=10**9)


def trip(at_ns: int, offset_ns: int, there_ns: int, inside_ns: int, back_ns: int) -> Trip:
    """Return a trip between clocks of this true offset."""
    received = at_ns + there_ns + offset_ns
    return Trip(at_ns, received, received + inside_ns, at_ns + there_ns + inside_ns + back_ns)


@given(
    offset=st.integers(min_value=-(10**18), max_value=10**18),
    ways=st.lists(st.tuples(WAYS, WAYS, WAYS), min_size=1, max_size=30),
)
def test_the_truth_lies_within_what_is_said_to_be_uncertain(offset: int, ways: list[tuple[int, int, int]]) -> None:
    found = offset_of([trip(number * 10**10, offset, *way) for number, way in enumerate(ways)])
    assert abs(found.offset_ns - offset) <= found.uncertainty_ns
    shortest = min(there + back for there, _, back in ways)
    assert shortest / 2 <= found.uncertainty_ns <= shortest / 2 + 2


def test_what_the_other_side_takes_to_answer_is_no_uncertainty() -> None:
    assert offset_of([trip(0, 77, 100, 10**9, 100)]).uncertainty_ns <= 102


def test_without_any_trip_there_is_no_clock() -> None:
    with pytest.raises(MeasurementError, match="no clock"):
        offset_of([])
