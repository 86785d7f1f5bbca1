from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.stats.changes import (
    WEAK,
    Split,
    block_length,
    correlation,
    find_calm,
    is_drift,
    robust_sd,
    scores,
    segments,
    split_p,
    strongest_split,
)
from prony.stats.quantiles import Array


def noise(seed: int, count: int = 60, sd: float = 0.02) -> Array:
    return np.random.default_rng(seed).normal(0, sd, count)


class TestScores:
    def test_one_spike_of_any_size_weighs_three(self) -> None:
        values = noise(1)
        values[30] = 1e9
        found = scores(values)
        assert found is not None
        assert found[30] == 3.0

    def test_what_is_all_equal_has_no_scores(self) -> None:
        assert scores(np.full(20, 0.1)) is None

    def test_half_of_equal_values_still_have_a_spread(self) -> None:
        assert robust_sd(np.array([1.0] * 6 + [2.0, 3.0])) > 0

    @given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40))
    def test_scores_turn_with_the_sign_and_never_leave_their_bounds(self, values: list[float]) -> None:
        found, turned = scores(np.array(values)), scores(-np.array(values))
        assert (found is None) == (turned is None)
        if found is not None and turned is not None:
            assert np.allclose(found, -turned, atol=1e-8)
            assert np.all(np.abs(found) <= 3)


class TestRunsThatAreLookedAtTogether:
    @pytest.mark.parametrize("step", [0.0, 0.01, 0.03, 0.1])
    def test_are_calm_where_looking_at_each_finds_nothing_and_nowhere_else(self, step: float) -> None:
        differing = 0
        for seed in range(12):
            values = noise(seed, 80)
            values[50:] += step
            calm = find_calm(values, 20, 60)
            for end, is_calm in zip(range(20, 81), calm, strict=True):
                found = scores(values[max(0, end - 60) : end])
                assert found is not None
                differing += bool(is_calm) != (strongest_split(found, least=WEAK) is None)
        assert differing == 0

    @pytest.mark.parametrize("values", [np.full(30, 0.5), np.where(np.arange(30) % 3, 0.5, math.nan)])
    def test_that_are_equal_or_not_known_are_not_called_calm(self, values: Array) -> None:
        assert not find_calm(values, 20, 60).any()


class TestTheStrongestSplit:
    def test_a_step_is_found_where_it_is(self) -> None:
        values = noise(2)
        values[41:] += 0.1
        found = scores(values)
        assert found is not None
        split = strongest_split(found)
        assert split is not None
        assert split.position == 41
        assert split.strength > 0
        assert split_p(found, split) == 1 / 2000

    def test_too_few_have_none(self) -> None:
        assert strongest_split(np.arange(5.0)) is None

    def test_what_does_not_vary_has_none(self) -> None:
        assert strongest_split(np.zeros(30)) is None

    def test_the_share_of_false_alarms_is_what_is_asked_for(self) -> None:
        below = 0
        for seed in range(400):
            found = scores(noise(seed, 40))
            assert found is not None
            split = strongest_split(found)
            assert split is not None
            below += split_p(found, split) <= 0.05
        # 400 looks at 5 %: 20 with a standard deviation of 4.4.
        assert 8 <= below <= 33

    def test_the_same_scores_have_the_same_probability(self) -> None:
        found = scores(noise(3))
        assert found is not None
        split = Split(30, 3.2)
        assert split_p(found, split) == split_p(found.copy(), split)

    def test_shuffled_blocks_keep_every_run(self) -> None:
        from prony.stats.changes import _orders

        for block in (1, 4, 7):
            orders = _orders(30, block, 49)
            assert np.array_equal(np.sort(orders, axis=0), np.tile(np.arange(30), (49, 1)).T)

    def test_runs_that_follow_their_neighbours_are_shuffled_in_longer_blocks(self) -> None:
        assert block_length(0.0, 60) == 1
        assert block_length(-0.5, 60) == 1
        assert 1 < block_length(0.3, 60) < block_length(0.6, 60) <= 15

    def test_correlation_is_that_beside_the_split(self) -> None:
        step = np.concatenate((np.zeros(30), np.ones(30))) + noise(4, sd=0.01)
        assert abs(correlation(step, 30)) < 0.35
        assert correlation(np.sin(np.arange(60) / 3), 30) > 0.7

    def test_a_line_is_drift_and_a_step_is_not(self) -> None:
        line = np.linspace(-1, 1, 60) + noise(5, sd=0.1)
        step = np.concatenate((np.zeros(45), np.ones(15))) + noise(5, sd=0.1)
        assert is_drift(line, 30)
        assert not is_drift(step, 45)

    def test_a_step_far_from_the_middle_is_drift_only_where_the_line_is_better(self) -> None:
        # A late step on a slope: the line explains a little less than the step does.
        scores = np.arange(40) * 0.042
        scores[28:] += 0.5
        scores -= np.mean(scores)
        times = np.arange(40) - 19.5
        line = (scores @ times) ** 2 / (times @ times)
        step = np.sum(scores[28:]) ** 2 * 40 / (28 * 12)
        assert 0.85 * step < line
        assert is_drift(scores, 28) == (line >= step)
        assert is_drift(scores, 20)


class TestSegments:
    def test_three_levels_are_three_segments(self) -> None:
        values = np.concatenate((np.zeros(30), np.full(20, 0.1), np.zeros(25))) + noise(6, 75, 0.01)
        found = segments(values, alpha=0.002)
        assert [low for low, _ in found] == pytest.approx([0, 30, 50], abs=1)

    def test_noise_alone_is_one(self) -> None:
        assert segments(noise(7, 80), alpha=0.002) == [(0, 80)]

    def test_nothing_has_none_and_a_constant_one(self) -> None:
        assert segments(np.array([]), alpha=0.002) == []
        assert segments(np.ones(9), alpha=0.002) == [(0, 9)]

    @settings(max_examples=count_examples(40), deadline=None)
    @given(st.lists(st.floats(-10, 10), min_size=1, max_size=50))
    def test_segments_cover_everything_once(self, values: list[float]) -> None:
        found = segments(np.array(values), alpha=0.002)
        assert found[0][0] == 0
        assert found[-1][1] == len(values)
        assert all(a[1] == b[0] for a, b in pairwise(found))
        assert all(math.isfinite(low) for low, _ in found)
