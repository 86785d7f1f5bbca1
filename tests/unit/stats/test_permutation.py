"""How often chance alone would do it: exact where that is possible, and always the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.stats.intervals import rate_difference_interval
from prony.stats.permutation import adjust_probabilities, permutation_p, robust_p, robust_sign_flip_p, sign_flip_p
from prony.stats.spread import noise_of, runs_needed

RNG = np.random.default_rng(5)
# Whole numbers: their sums are exact, so the arrangement of ties does not depend on rounding.
whole = st.lists(st.integers(1, 50), min_size=2, max_size=7).map(lambda found: np.array(found, dtype=float))


def _means(first: np.ndarray, second: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(np.mean(first, axis=axis) - np.mean(second, axis=axis))


class TestTwoSets:
    def test_few_runs_are_tried_in_every_arrangement(self) -> None:
        before, after = RNG.normal(size=6), RNG.normal(1, 1, size=7)
        expected = scipy.stats.permutation_test((before, after), _means, vectorized=True, n_resamples=np.inf).pvalue
        # scipy doubles the smaller tail; of sets of unlike size the two tails differ a little.
        assert permutation_p(before, after) == pytest.approx(expected, abs=0.02)

    def test_sets_of_one_size_agree_with_scipy_to_the_last_digit(self) -> None:
        before, after = RNG.normal(size=7), RNG.normal(1, 1, size=7)
        expected = scipy.stats.permutation_test((before, after), _means, vectorized=True, n_resamples=np.inf).pvalue
        assert permutation_p(before, after) == pytest.approx(expected)

    def test_many_runs_are_drawn_and_agree_with_the_rank_test(self) -> None:
        before, after = RNG.normal(size=20), RNG.normal(0.8, 1, size=20)
        expected = scipy.stats.mannwhitneyu(before, after).pvalue
        assert robust_p(before, after) == pytest.approx(expected, abs=0.03)

    def test_five_against_five_can_reach_one_percent_and_four_cannot(self) -> None:
        low, high = np.arange(5.0), np.arange(5.0) + 100
        assert robust_p(low, high) == pytest.approx(2 / 252)
        assert robust_p(low[:4], high[:4]) == pytest.approx(2 / 70)

    def test_constants_and_equal_sets_are_no_difference(self) -> None:
        same = np.ones(6)
        assert robust_p(same, same) == permutation_p(same, same) == 1.0
        assert robust_p(same, same * 2) == pytest.approx(2 / 924)

    def test_spikes_do_not_hide_a_change(self) -> None:
        before = np.log(100 + RNG.normal(0, 1, 15))
        after = before + 0.05
        before[3] += 1.0
        assert robust_p(before, after) < 0.001 < permutation_p(before, after)

    @given(whole, whole)
    @settings(max_examples=count_examples(80), deadline=None)
    def test_neither_the_order_nor_the_direction_nor_the_origin_matters(
        self, before: np.ndarray, after: np.ndarray
    ) -> None:
        found = permutation_p(before, after)
        assert permutation_p(before[::-1], np.roll(after, 1)) == found
        assert permutation_p(-before, -after) == found
        assert permutation_p(before + 1000, after + 1000) == found
        assert 0 < found <= 1


class TestPairs:
    def test_the_signs_of_few_pairs_are_all_tried(self) -> None:
        differences = RNG.normal(0.5, 1, size=10)
        expected = scipy.stats.permutation_test(
            (differences,), np.mean, vectorized=True, permutation_type="samples", n_resamples=np.inf
        ).pvalue
        assert sign_flip_p(differences) == pytest.approx(expected)

    def test_seven_pairs_that_agree_are_one_in_sixty_four(self) -> None:
        assert sign_flip_p(np.full(7, 0.3)) == robust_sign_flip_p(np.full(7, 0.3)) == pytest.approx(2 / 128)

    def test_no_difference_at_all_is_certain_to_come_by_chance(self) -> None:
        assert sign_flip_p(np.zeros(9)) == robust_sign_flip_p(np.zeros(9)) == 1.0

    def test_many_pairs_are_drawn_the_same_way_each_time(self) -> None:
        differences = RNG.normal(0.2, 1, size=40)
        assert sign_flip_p(differences) == sign_flip_p(differences[::-1]) == sign_flip_p(-differences)


class TestMany:
    def test_the_adjustment_is_that_of_scipy(self) -> None:
        found = list(RNG.uniform(size=30))
        assert adjust_probabilities(found) == pytest.approx(list(scipy.stats.false_discovery_control(found)))
        assert adjust_probabilities([]) == []


class TestRates:
    def test_the_interval_of_a_difference_holds_it_and_knows_no_trials(self) -> None:
        low, high = rate_difference_interval((0, 1000), (20, 1000)) or (0, 0)
        assert 0.01 < low < 0.02 < high < 0.035
        assert rate_difference_interval((0, 0), (1, 10)) is None
        same = rate_difference_interval((0, 500), (0, 500))
        assert same is not None
        assert same[0] == pytest.approx(-same[1])


class TestPower:
    def test_a_change_as_large_as_the_noise_needs_two_dozen_runs(self) -> None:
        assert runs_needed(0.03, 0.03) == 24
        assert runs_needed(0.001, 0.03) == 5

    def test_noise_is_that_inside_the_sets_and_not_the_step_between_them(self) -> None:
        before = 100 * np.exp(RNG.normal(0, 0.02, 40))
        noise = noise_of(before, before * 3)
        assert noise == pytest.approx(0.02, rel=0.3)
        assert noise_of(before, np.array([1.0, 2.0])) is None
        assert noise_of(before, np.array([1.0, 0.0, 2.0])) is None
        assert noise_of(np.ones(5), np.ones(5)) == 0
