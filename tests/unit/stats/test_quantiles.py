"""Quantiles and the ranks of their intervals, against numpy, scipy and simulation."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.stats.quantiles import (
    interval_ranks,
    least_count,
    lower_rank,
    median_ranks,
    median_unbiased,
    nearest_rank,
    quantile,
)

FLOATS = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)
SHARES = st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])


@given(FLOATS, st.floats(0, 1))
def test_a_quantile_is_numpys_linear_one(values: list[float], q: float) -> None:
    ordered = np.sort(values)
    assert quantile(ordered, q) == pytest.approx(float(np.quantile(ordered, q)), rel=1e-12, abs=1e-6)


@given(FLOATS, SHARES)
def test_the_nearest_rank_is_an_observed_value_and_numpys(values: list[float], q: float) -> None:
    ordered = np.sort(values)
    assert nearest_rank(ordered, q) in values
    assert nearest_rank(ordered, q) == float(np.quantile(ordered, q, method="inverted_cdf"))


def test_no_values_have_no_quantile() -> None:
    assert math.isnan(quantile(np.array([]), 0.5))
    assert math.isnan(nearest_rank(np.array([]), 0.5))


@pytest.mark.parametrize(("q", "count"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_a_percentile_has_an_interval_from_this_many_values_on(q: float, count: int) -> None:
    assert least_count(q) == count
    assert interval_ranks(count - 1, q) is None
    ranks = interval_ranks(count, q)
    assert ranks is not None
    assert ranks.confidence >= 0.95


@pytest.mark.parametrize("count", [6, 7, 20, 36, 99, 368, 1000, 5000, 2_000_000])
@pytest.mark.parametrize("q", [0.5, 0.9, 0.99, 0.05])
def test_the_ranks_are_those_of_the_exact_binomial_distribution(count: int, q: float) -> None:
    from scipy.special import bdtr

    ranks = interval_ranks(count, q)
    if ranks is None:
        assert count < least_count(q)
        return
    assert bdtr(ranks.low - 1, count, q) <= 0.025 < bdtr(ranks.low, count, q)
    assert bdtr(ranks.high - 2, count, q) < 0.975 <= bdtr(ranks.high - 1, count, q)
    covered = bdtr(ranks.high - 1, count, q) - bdtr(ranks.low - 1, count, q)
    assert ranks.confidence == pytest.approx(float(covered), abs=1e-8)


def test_the_interval_is_scipys() -> None:
    from scipy.stats import quantile_test

    values = np.random.default_rng(3).lognormal(size=200)
    ordered = np.sort(values)
    for q in (0.25, 0.5, 0.9):
        ranks = interval_ranks(200, q)
        assert ranks is not None
        expected = quantile_test(values, p=q).confidence_interval(0.95)
        assert (ordered[ranks.low - 1], ordered[ranks.high - 1]) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("count", "level"), [(2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)])
def test_the_median_of_few_values_gets_the_widest_interval_with_its_true_confidence(count: int, level: float) -> None:
    ranks = median_ranks(count)
    assert ranks is not None
    assert (ranks.low, ranks.high, ranks.confidence) == (1, count, level)


def test_one_value_has_no_interval() -> None:
    assert median_ranks(1) is None
    assert median_ranks(0) is None


@given(st.integers(2, 3000), SHARES)
def test_more_confidence_never_gives_a_narrower_interval(count: int, q: float) -> None:
    wide, narrow = interval_ranks(count, q, 0.99), interval_ranks(count, q, 0.8)
    if wide is not None:
        assert narrow is not None
        assert wide.low <= narrow.low <= narrow.high <= wide.high
        assert 1 <= wide.low < wide.high <= count


@given(st.integers(36, 3000), st.sampled_from([0.5, 0.75, 0.9]), st.integers(0, 2**31))
def test_the_interval_contains_the_quantile_of_the_values(count: int, q: float, seed: int) -> None:
    ordered = np.sort(np.random.default_rng(seed).lognormal(size=count))
    ranks = interval_ranks(count, q)
    assert ranks is not None
    assert ordered[ranks.low - 1] <= quantile(ordered, q) <= ordered[ranks.high - 1]


@pytest.mark.parametrize(("count", "q"), [(5, 0.5), (6, 0.5), (11, 0.5), (100, 0.9), (400, 0.99)])
def test_the_stated_confidence_is_how_often_the_interval_covers(count: int, q: float) -> None:
    draws = np.sort(np.random.default_rng(11).exponential(size=(20_000, count)), axis=1)
    ranks = median_ranks(count) if q == 0.5 else interval_ranks(count, q)
    assert ranks is not None
    truth = -math.log(1 - q)
    covered = np.mean((draws[:, ranks.low - 1] <= truth) & (truth <= draws[:, ranks.high - 1]))
    assert covered == pytest.approx(ranks.confidence, abs=0.006)


def test_a_lower_bound_of_a_percentile_holds_as_often_as_it_says() -> None:
    rank = lower_rank(100, 0.99)
    assert rank is not None
    draws = np.sort(np.random.default_rng(5).exponential(size=(20_000, 100)), axis=1)
    assert np.mean(draws[:, rank - 1] <= -math.log(0.01)) >= 0.975 - 0.003


def test_too_few_values_have_no_lower_bound() -> None:
    assert lower_rank(2, 0.5) is None
    assert lower_rank(3, 0.999) is not None


def test_median_unbiased_is_type_eight_and_as_often_too_low_as_too_high() -> None:
    rng = np.random.default_rng(5)
    values = np.sort(rng.lognormal(0, 0.5, (4000, 368)), axis=1)
    for q in (0.5, 0.9, 0.99):
        ours = np.array([median_unbiased(one, q) for one in values])
        assert ours == pytest.approx(np.quantile(values, q, axis=1, method="median_unbiased"))
        assert np.mean(ours < np.exp(0.5 * NormalDist().inv_cdf(q))) == pytest.approx(0.5, abs=0.03)


def test_median_unbiased_of_few_and_of_infinite_values() -> None:
    assert math.isnan(median_unbiased(np.array([]), 0.9))
    assert median_unbiased(np.array([2.0]), 0.99) == 2.0
    assert median_unbiased(np.array([1.0, math.inf, math.inf]), 0.5) == math.inf
    assert median_unbiased(np.array([3.0] * 9), 0.95) == 3.0
