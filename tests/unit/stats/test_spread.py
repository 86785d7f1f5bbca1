"""The split of variance over levels, and what it lets us see."""

from __future__ import annotations

import numpy as np
import pytest

from prony.analyse.compare.effect import conclude, effect_of, gate
from prony.model.comparison import Conclusion, Effect, Terms
from prony.stats.quantiles import Array
from prony.stats.spread import (
    DEFAULT_GATE,
    Moments,
    detectable_change,
    detectable_shift,
    noise_of,
    robust_cv,
    split,
)


def moments(run: Array) -> Moments:
    return Moments(run.size, float(np.mean(run)), float(np.var(run, ddof=1)))


def test_both_levels_of_a_nested_design_are_recovered() -> None:
    rng = np.random.default_rng(1)
    runs = rng.normal(100, 3, size=(4000, 1)) + rng.normal(0, 5, size=(4000, 50))
    found = split([moments(run) for run in runs])
    assert found is not None
    assert found.between_sd == pytest.approx(3, rel=0.03)
    assert found.within_sd == pytest.approx(5, rel=0.02)
    assert found.icc == pytest.approx(9 / 34, rel=0.06)


def test_runs_that_differ_by_no_more_than_their_own_noise_have_no_spread_between() -> None:
    found = split([Moments(10, 5.0, 1.0), Moments(10, 5.01, 1.0)])
    assert found is not None
    assert found.between_sd == 0
    assert found.icc == 0


def test_constant_equal_runs_have_no_share_to_speak_of() -> None:
    found = split([Moments(10, 5.0, 0.0), Moments(10, 5.0, 0.0)])
    assert found is not None
    assert (found.within_sd, found.between_sd, found.icc) == (0, 0, None)


def test_one_run_or_runs_of_one_sample_cannot_be_split() -> None:
    assert split([]) is None
    assert split([Moments(10, 5.0, 1.0)]) is None
    assert split([Moments(1, 5.0, None), Moments(1, 6.0, None)]) is None


def test_the_robust_variation_ignores_one_spike_and_the_unit() -> None:
    values = np.random.default_rng(2).normal(100, 2, 301)
    spiked = np.append(values, 1e6)
    assert robust_cv(values) == pytest.approx(0.02, rel=0.2)
    assert robust_cv(spiked) == pytest.approx(robust_cv(values * 1000) or 0, rel=0.02)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0, 0.0], [np.inf, np.inf]])
def test_what_has_no_variation_to_speak_of_gets_none(values: list[float]) -> None:
    assert robust_cv(np.array(values)) is None


def test_the_normal_formula_of_a_shift_halves_with_four_times_the_runs() -> None:
    assert detectable_shift(0.02, 10) == pytest.approx(0.0306, abs=1e-4)
    assert detectable_shift(0.02, 40) == pytest.approx(detectable_shift(0.02, 10) / 2)


def test_no_change_below_the_gate_of_a_comparison_is_promised() -> None:
    assert gate(Terms().threshold) == DEFAULT_GATE
    assert detectable_change(0.0, 5) > DEFAULT_GATE
    assert detectable_change(0.00026, 10) == pytest.approx(DEFAULT_GATE, rel=0.02)


@pytest.mark.parametrize("runs", [5, 9, 17, 40, 200])
def test_more_noise_fewer_runs_and_sides_measured_apart_need_a_larger_change(runs: int) -> None:
    known = detectable_change(0.02, runs, is_known=True)
    assert known < detectable_change(0.02, runs) < detectable_change(0.03, runs)
    assert detectable_change(0.02, runs + 1) < detectable_change(0.02, runs)
    apart = detectable_change(0.02, runs, apart_spread=0.02)
    assert apart > max(detectable_change(0.02, runs), 4.8 * 0.02)


@pytest.mark.parametrize(("runs", "noise"), [(5, 0.003), (5, 0.02), (10, 0.01)])
def test_what_is_promised_is_seen_four_times_in_five(runs: int, noise: float) -> None:
    rng = np.random.default_rng((runs, 3))
    seen, trials = 0, 200
    for _ in range(trials):
        before, after = np.exp(rng.normal(0, noise, (2, runs)))
        found = noise_of(before)
        assert found is not None
        effect = effect_of(before, after * (1 + detectable_change(found, runs)))
        assert isinstance(effect, Effect)
        seen += conclude(effect, "lower", Terms().threshold) is Conclusion.REGRESSION
    assert seen / trials >= 0.74  # 80 %, and what chance makes of 200
