"""How far two sets lie apart: the interval holds what it promises, in any unit and either direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.stats.shift import (
    cliffs_delta,
    paired_ratio,
    paired_shift,
    rank_sum_ranks,
    ratio,
    shift,
    signed_rank_ranks,
)

positive = st.lists(st.floats(0.01, 1e4), min_size=2, max_size=12).map(np.array)


class TestRanks:
    @pytest.mark.parametrize(("first", "second"), [(5, 5), (7, 12), (10, 10), (30, 30)])
    def test_two_sets_by_the_exact_distribution_of_the_rank_sum(self, first: int, second: int) -> None:
        ranks = rank_sum_ranks(first, second)
        assert ranks is not None
        # The statistic's own null, asked of scipy by a sample whose U is known: the first `low` ranks and no more.
        miss = _u_below(first, second, ranks.low)
        assert ranks.confidence == pytest.approx(1 - 2 * miss)
        assert _u_below(first, second, ranks.low + 1) > 0.025 >= miss

    def test_many_runs_give_nearly_the_same_by_the_normal_approximation(self) -> None:
        exact, approximate = rank_sum_ranks(50, 50), rank_sum_ranks(50, 51)
        assert exact is not None
        assert approximate is not None
        assert approximate.confidence == pytest.approx(exact.confidence, abs=0.002)
        assert approximate.low / (50 * 51) == pytest.approx(exact.low / 2500, abs=0.003)

    def test_few_runs_have_the_widest_interval_with_what_it_is_worth(self) -> None:
        ranks = rank_sum_ranks(3, 3)
        assert ranks is not None
        assert (ranks.low, ranks.high) == (1, 9)
        assert ranks.confidence == pytest.approx(0.9)
        assert rank_sum_ranks(1, 1) is None

    def test_pairs_by_the_exact_distribution_of_the_signed_ranks(self) -> None:
        ranks = signed_rank_ranks(10)
        assert ranks is not None
        assert (ranks.low, ranks.high) == (9, 47)
        assert ranks.confidence == pytest.approx(1 - 2 * 25 / 1024)
        assert signed_rank_ranks(1) is None


def _u_below(first: int, second: int, count: int) -> float:
    """Return how often U is below `count`, from scipy's exact test of samples that have just that U."""
    after = [-1.0] * second
    u, before = 0, list(range(first))
    for place in range(second):
        above = min(first, count - 1 - u)
        after[place] = above - 0.5 + place * 1e-3 if above else -0.5 - place * 1e-3
        u += above
    return float(scipy.stats.mannwhitneyu(after, before, alternative="less", method="exact").pvalue)


class TestShift:
    def test_the_value_is_the_median_of_all_differences(self) -> None:
        found = shift(np.array([1.0, 2.0, 3.0]), np.array([11.0, 12.0, 16.0]))
        assert (found.value, found.low, found.high) == (10.0, 8.0, 15.0)

    def test_one_against_one_is_a_value_without_an_interval(self) -> None:
        found = ratio(np.array([2.0]), np.array([3.0]))
        assert found.value == pytest.approx(1.5)
        assert found.low is None

    def test_one_wild_run_hardly_moves_it(self) -> None:
        before = np.linspace(100, 101, 9)
        after = before * 1.05
        wild = np.append(after[:-1], 1e6)
        assert ratio(before, wild).value == pytest.approx(1.05, rel=0.002)

    def test_pairs_take_out_what_both_share(self) -> None:
        drift = np.linspace(1, 2, 8)
        found = paired_ratio(drift, drift * 1.1)
        assert found.value == pytest.approx(1.1)
        assert found.low == pytest.approx(1.1)
        assert paired_shift(np.array([1.0, 1.0])).value == 1.0

    def test_cliffs_delta_counts_who_is_above_whom(self) -> None:
        low, high = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        assert cliffs_delta(low, high) == 1
        assert cliffs_delta(high, low) == -1
        assert cliffs_delta(low, low) == 0

    @given(positive, positive, st.sampled_from([1e-6, 1e3, 3.7]))
    @settings(max_examples=count_examples(60), deadline=None)
    def test_another_unit_changes_nothing(self, before: np.ndarray, after: np.ndarray, unit: float) -> None:
        here, there = ratio(before, after), ratio(before * unit, after * unit)
        assert here.value == pytest.approx(there.value)
        assert here.low == pytest.approx(there.low)

    @given(positive, positive)
    @settings(max_examples=count_examples(60), deadline=None)
    def test_the_inverse_of_everything_is_the_inverse(self, before: np.ndarray, after: np.ndarray) -> None:
        here, there = ratio(before, after), ratio(1 / before, 1 / after)
        assert here.value == pytest.approx(1 / there.value)
        assert here.low is not None
        assert there.high is not None
        assert math.log(here.low) == pytest.approx(-math.log(there.high), abs=1e-9)
