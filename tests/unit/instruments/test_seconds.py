"""A run is cut into seconds in which nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.instruments.per_second import in_flight, quantiles, seconds

S = 1_000_000_000
TIMES = st.lists(st.tuples(st.integers(0, 20 * S), st.integers(1, 5 * S), st.booleans()), min_size=1, max_size=80)


@given(TIMES)
def test_every_request_is_in_one_second_and_time_in_flight_adds_up(rows: list[tuple[int, int, bool]]) -> None:
    begins = np.array([begin for begin, _, _ in rows]) + 10**15
    ends = begins + np.array([took for _, took, _ in rows])
    good = np.array([ok for _, _, ok in rows])
    found = seconds(begins, ends, good)
    assert found.begun.sum() == len(rows)
    assert found.succeeded.sum() == good.sum()
    assert found.failed.sum() == (~good).sum()
    assert found.in_flight.sum() == pytest.approx((ends - begins).sum() / S, abs=1e-3)


def test_medians_are_those_of_the_second_in_which_a_request_ended() -> None:
    begins = np.array([0, 0, 0, S])
    ends = np.array([100, 300, 200, S + 7]) * 1
    found = seconds(begins, ends, np.array([True, True, True, False]))
    assert found.p50_ms[0] == pytest.approx(200e-6)
    assert found.p99_ms[0] == pytest.approx(300e-6)
    assert np.isnan(found.p50_ms[1])


def test_quantiles_by_group_are_those_of_each_group_alone() -> None:
    rng = np.random.default_rng(0)
    groups, values = rng.integers(0, 7, 500), rng.integers(0, 10**6, 500)
    found = quantiles(groups, values, 0.5, 8)
    for group in range(7):
        mine = np.sort(values[groups == group])
        assert found[group] == mine[int(np.ceil(mine.size * 0.5)) - 1]
    assert np.isnan(found[7])
    huge = quantiles(groups, values * 2**40, 0.5, 8)  # too large to be sorted together with its group
    assert np.array_equal(huge[:7], found[:7] * 2**40)


def test_half_a_second_in_flight_is_half_a_request() -> None:
    assert in_flight(np.array([0]), np.array([S // 2]), S, 2).tolist() == [0.5, 0.0]


def test_nothing_has_no_seconds() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert seconds(none, none, none.astype(bool)).at_s.size == 0
