"""Outliers: which values get a label, and that units and order do not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.stats.outliers import Fences, fences, label_outliers


def test_a_spike_is_severe_and_a_lesser_one_suspicious() -> None:
    values = np.exp(np.random.default_rng(1).normal(0, 0.1, 1000)) * 10
    values[[10, 20]] = [100.0, 10 * math.exp(0.42)]
    marks = label_outliers(values)
    assert marks[10] == 2
    assert marks[20] == 1
    assert np.count_nonzero(marks) <= 6


def test_fast_values_are_outliers_too() -> None:
    values = np.exp(np.random.default_rng(1).normal(0, 0.1, 1000))
    values[5] = 0.2
    assert label_outliers(values)[5] == 2


def test_the_fences_are_the_textbook_ones_on_the_logarithm() -> None:
    values = np.random.default_rng(8).lognormal(size=501)
    logs = np.log(values)
    q1, median, q3 = np.quantile(logs, [0.25, 0.5, 0.75])
    deviation = np.median(np.abs(logs - median))
    limits = fences(np.sort(values))
    assert limits.severe == pytest.approx((np.exp(q1 - 3 * (q3 - q1)), np.exp(q3 + 3 * (q3 - q1))))
    reach = 3.5 * deviation / 0.6745
    assert limits.suspicious == pytest.approx((np.exp(median - reach), np.exp(median + reach)))


@given(st.lists(st.floats(0.001, 1e6), min_size=5, max_size=80))
def test_the_median_deviation_found_by_search_is_the_sorted_one(values: list[float]) -> None:
    logs = np.log(np.sort(values))
    median = np.median(logs)
    deviation = float(np.median(np.abs(logs - median)))
    limits = fences(np.sort(values))
    if deviation > 1e-9:
        assert limits.suspicious[1] == pytest.approx(float(np.exp(median + 3.5 * deviation / 0.6745)), rel=1e-6)


@settings(max_examples=count_examples(60))
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=60), st.permutations(range(60)))
def test_order_does_not_change_a_label(values: list[int], order: list[int]) -> None:
    array = np.array(values)
    chosen = np.array([i for i in order if i < array.size])
    assert np.array_equal(label_outliers(array)[chosen], label_outliers(array[chosen]))


def test_units_do_not_change_a_label() -> None:
    values = np.random.default_rng(3).lognormal(0, 0.2, 400)
    values[7] = 90
    assert np.array_equal(label_outliers(values), label_outliers(values * 1000))


def test_where_most_values_are_equal_the_mean_deviation_is_the_scale() -> None:
    values = np.full(100, 5.0)
    values[[3, 50]] = [5.1, 50.0]
    marks = label_outliers(values)
    assert marks[50] == 2
    assert np.count_nonzero(marks) == 1


def test_two_levels_of_a_coarse_clock_are_no_outliers() -> None:
    assert not label_outliers(np.array([10.0] * 60 + [11.0] * 40)).any()


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 900.0], [4.0] * 50])
def test_few_or_constant_values_have_no_outliers(values: list[float]) -> None:
    assert not label_outliers(np.array(values)).any()


def test_what_is_not_finite_has_no_say_and_infinity_is_severe() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.05, 0.95, np.nan, np.inf])
    assert label_outliers(values).tolist() == [0, 0, 0, 0, 0, 0, 2]
    assert fences(np.sort(values)) == fences(np.sort(values[:5]))


def test_values_that_reach_zero_or_below_are_judged_as_they_are() -> None:
    values = np.append(np.random.default_rng(2).normal(0, 1, 200), 40.0)
    assert label_outliers(values)[-1] == 2


def test_without_a_limit_nothing_is_outside() -> None:
    assert Fences().nearest == (-math.inf, math.inf)
