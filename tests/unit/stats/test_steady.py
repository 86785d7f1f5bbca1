"""Where a series becomes steady: synthetic shapes, and the segmentation against ruptures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.stats.quantiles import Array
from prony.stats.steady import cuts, steady_from

SEEDS = range(10)


def noisy(seed: int, level: Array, cv: float = 0.01) -> Array:
    return 100 * level * (1 + np.random.default_rng(seed).normal(0, cv, level.size))


def position(count: int) -> Array:
    return np.arange(count) / count


def positions(level: Array, cv: float = 0.01) -> list[int | None]:
    return [steady_from(noisy(seed, level, cv)) for seed in SEEDS]


@pytest.mark.parametrize("count", [20, 100, 500])
@pytest.mark.parametrize("cv", [0.005, 0.05])
def test_a_flat_series_is_steady_from_the_start(count: int, cv: float) -> None:
    assert positions(np.ones(count), cv) == [0] * len(SEEDS)


def test_a_warm_up_that_decays_is_cut_off() -> None:
    decay = 1 + 0.5 * np.exp(-position(300) / 0.05)
    for seed in SEEDS:
        series = noisy(seed, decay)
        start = steady_from(series)
        assert start is not None
        assert 20 <= start <= 100
        assert np.mean(series[start:]) == pytest.approx(100, rel=0.005)


def test_a_step_is_found_where_it_is() -> None:
    found = positions(np.where(position(200) < 0.3, 1.2, 1.0))
    assert all(start is not None and abs(start - 60) <= 2 for start in found)


def test_an_endless_drift_is_never_steady() -> None:
    assert positions(1 + 0.2 * position(300)) == [None] * len(SEEDS)


@pytest.mark.parametrize("slope", [1, -1, 7])
def test_a_drift_without_noise_is_not_mistaken_for_a_constant(slope: int) -> None:
    assert steady_from(1000 + slope * np.arange(100)) is None


def test_a_slow_down_near_the_end_leaves_no_steady_state() -> None:
    assert positions(np.where(position(200) > 0.8, 1.1, 1.0)) == [None] * len(SEEDS)


def test_a_slow_down_in_the_middle_begins_a_new_state() -> None:
    found = positions(np.where(position(200) > 0.4, 1.1, 1.0))
    assert all(start is not None and abs(start - 81) <= 2 for start in found)


def test_spikes_do_not_matter() -> None:
    for seed in SEEDS:
        series = noisy(seed, np.ones(300))
        spikes = np.random.default_rng(seed + 100).random(300) < 0.06
        series[5:][spikes[5:]] *= 3
        assert steady_from(series) == 0


def test_two_odd_values_at_the_very_end_are_no_new_state() -> None:
    level = np.ones(200)
    level[-2:] = 1.2
    assert positions(level) == [0] * len(SEEDS)


def test_three_slow_first_values_are_a_warm_up() -> None:
    level = np.ones(100)
    level[:3] = 2
    assert positions(level) == [3] * len(SEEDS)


def test_values_that_follow_their_neighbours_are_still_steady() -> None:
    flagged = 0
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 0.02, 200)
        for i in range(1, noise.size):
            noise[i] += 0.6 * noise[i - 1]
        flagged += steady_from(100 * (1 + noise)) is None
    assert flagged <= 3


def switching(seed: int, count: int, dwell: int) -> Array:
    """Return a level that jumps between 1 and 1.06 after random times of `dwell` values on average."""
    random = np.random.default_rng(seed)
    times = random.geometric(1 / dwell, count)
    high = np.repeat(np.arange(times.size) % 2, times)[:count]
    return 1 + 0.06 * high


@pytest.mark.parametrize("dwell", [25, 50, 100])
def test_levels_that_come_and_go_are_one_steady_state(dwell: int) -> None:
    starts = [steady_from(noisy(seed, switching(seed, 1000, dwell), 0.005)) for seed in range(40)]
    assert sum(start is None for start in starts) <= 8
    assert np.median([start for start in starts if start is not None]) < 100


def test_a_warm_up_before_levels_that_come_and_go_is_cut_off() -> None:
    warm = 0.5 * np.exp(-position(1000) * 20)
    starts = [steady_from(noisy(seed, warm + switching(seed, 1000, 50), 0.005)) for seed in range(20)]
    found = [start for start in starts if start is not None]
    assert len(found) >= 17
    assert 30 <= np.median(found) <= 300


def test_a_new_level_above_levels_that_come_and_go_is_not_joined() -> None:
    higher = 0.1 * (position(1000) > 0.6)
    starts = [steady_from(noisy(seed, higher + switching(seed, 1000, 25), 0.005)) for seed in range(20)]
    assert all(start is None or start >= 500 for start in starts)


def test_a_coarse_clock_does_not_matter() -> None:
    assert steady_from(np.round(noisy(1, np.ones(200), 0.004) / 1).astype(np.int64)) == 0
    assert steady_from(np.concatenate((np.full(60, 20), np.full(140, 10)))) == 60


@pytest.mark.parametrize("series", [np.ones(500), np.zeros(40), np.array([5.0]), np.array([]), np.arange(11.0)])
def test_a_constant_and_a_short_series_are_steady_from_the_start(series: Array) -> None:
    assert steady_from(series) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_series_that_is_not_finite_is_not_steady(bad: float) -> None:
    series = np.ones(50)
    series[20] = bad
    assert steady_from(series) is None


def test_a_long_series_is_judged_in_blocks() -> None:
    start = steady_from(noisy(1, np.where(position(100_000) < 0.25, 1.3, 1.0), 0.1))
    assert start is not None
    assert start % 100 == 0
    assert start == pytest.approx(25_000, abs=300)


@settings(max_examples=count_examples(40), deadline=None)
@given(st.integers(0, 2**31), st.integers(12, 150))
def test_units_do_not_move_the_start(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    series = np.round(
        1000 * np.exp(rng.normal(0, 0.05, count)) * np.where(np.arange(count) < rng.integers(count), 2, 1)
    )
    assert steady_from(series) == steady_from(series * 1024)


@settings(max_examples=count_examples(30), deadline=None)
@given(st.integers(0, 2**31), st.integers(12, 120))
def test_the_segmentation_is_that_of_ruptures(seed: int, count: int) -> None:
    import ruptures

    rng = np.random.default_rng(seed)
    levels = np.repeat(rng.normal(0, 3, count // 15 + 1), 15)[:count]
    values = levels + rng.normal(size=count)
    penalty = 4 * float(np.log(count))
    expected = ruptures.KernelCPD("linear", min_size=2).fit_predict(values.reshape(-1, 1), pen=penalty)
    assert cuts(values, penalty=penalty) == expected
