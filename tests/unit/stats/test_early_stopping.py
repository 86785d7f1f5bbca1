"""MLPerf's early-stopping rule, to the query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.stats.early_stopping import over_allowed, passes, queries_needed


@pytest.mark.parametrize(
    ("percentile", "needed"),
    [
        (0.9, [44, 64, 81, 127, 197]),
        (0.95, [90, 130, 165, 259, 398]),
        (0.99, [459, 662, 838, 1307, 2010]),
        (0.999, [4603, 6636, 8403, 13105, 20140]),
    ],
)
def test_the_queries_needed_are_loadgens(percentile: float, needed: list[int]) -> None:
    assert [queries_needed(over, percentile) for over in (0, 1, 2, 5, 10)] == needed


@given(st.integers(0, 300), st.sampled_from([0.5, 0.9, 0.97, 0.99, 0.999]))
def test_one_query_fewer_than_needed_does_not_pass(over: int, percentile: float) -> None:
    needed = queries_needed(over, percentile)
    assert passes(needed, over, percentile)
    assert not passes(needed - 1, over, percentile)


@given(st.integers(1, 5_000_000), st.sampled_from([0.9, 0.99, 0.999]))
def test_the_most_that_may_be_over_pass_and_one_more_does_not(queries: int, percentile: float) -> None:
    over = over_allowed(queries, percentile)
    if over is None:
        assert queries < queries_needed(0, percentile)
    else:
        assert passes(queries, over, percentile)
        assert not passes(queries, over + 1, percentile)


def test_too_few_queries_allow_nothing_and_say_so() -> None:
    assert over_allowed(0, 0.9) is None
    assert over_allowed(43, 0.9) is None
    assert over_allowed(44, 0.9) == 0
    assert over_allowed(64, 0.9) == 1


def test_a_server_that_misses_its_percentile_by_a_hair_seldom_passes() -> None:
    over = np.random.default_rng(3).binomial(2000, 0.0101, size=4000)
    passed = np.mean([passes(2000, int(count), 0.99) for count in over])
    assert passed <= 0.01


def test_as_many_over_as_there_are_queries_never_pass() -> None:
    assert not passes(5, 5, 0.01)
    assert not passes(0, 0, 0.9)
