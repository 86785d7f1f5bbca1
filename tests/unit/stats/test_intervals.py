"""Intervals of means and rates: they cover as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.stats.intervals import mean_interval, rate_interval


@pytest.mark.parametrize("count", [2, 5, 30])
def test_the_t_interval_covers_the_mean_in_95_of_100_normal_sets(count: int) -> None:
    draws = np.random.default_rng(7).normal(10, 1, size=(3000, count))
    found = [mean_interval(draw) for draw in draws]
    assert np.mean([low <= 10 <= high for low, high in filter(None, found)]) == pytest.approx(0.95, abs=0.015)


def test_the_t_interval_is_scipys() -> None:
    from scipy.stats import ttest_1samp

    values = np.array([1.0, 2.0, 4.0, 8.0])
    expected = ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_interval(values, 0.9) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.nan], [1.0, np.inf]])
def test_what_has_no_t_interval_gets_none(values: list[float]) -> None:
    assert mean_interval(np.array(values)) is None


def test_a_constant_has_an_interval_of_no_width() -> None:
    assert mean_interval(np.full(5, 3.0)) == (3.0, 3.0)


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (1, 7), (5, 5), (37, 100)])
def test_the_rate_interval_is_wilsons(successes: int, trials: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(successes, trials).proportion_ci(method="wilson")
    assert rate_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.integers(1, 500), st.data())
def test_the_rate_interval_lies_in_0_to_1_and_holds_the_rate(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    found = rate_interval(successes, trials)
    assert found is not None
    assert 0 <= found[0] <= successes / trials <= found[1] <= 1


def test_the_rate_interval_covers_about_as_often_as_it_says() -> None:
    counts = np.random.default_rng(9).binomial(50, 0.1, size=4000)
    found = [rate_interval(int(count), 50) for count in counts]
    assert np.mean([low <= 0.1 <= high for low, high in filter(None, found)]) == pytest.approx(0.95, abs=0.03)


def test_no_trials_have_no_rate() -> None:
    assert rate_interval(0, 0) is None
