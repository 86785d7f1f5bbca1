"""Intervals of percentiles over runs hold the truth as often as they say, or are not printed and say why."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.coverage_runs import (
    NOISES,
    RUN_NOISES,
    Noise,
    Tally,
    cover,
    cover_following,
    cover_stopping,
    make_runs,
)
from lanes import THOROUGH
from prony.analyse.estimates import inference_estimates, single_estimates
from prony.analyse.runs import MeasuredRun
from prony.stats.quantiles import Array

_BY_NAME = {noise.name: noise for noise in NOISES}
SKEWED, FAR_MODES, FOLLOWING = (
    _BY_NAME[name] for name in ("skewed (lognormal 0.5)", "two modes (10.5% at 2)", "following (AR 0.9)")
)


def measured(values_ns: Array, index: int = 0) -> MeasuredRun:
    whole = np.rint(values_ns).astype(np.int64)
    return MeasuredRun(
        repetition=index, steady_from=0, indices=np.arange(whole.size), durations_ns=whole,
        window_ns=int(whole.sum()), taken=int(whole.size),
    )  # fmt: skip


def runs_of(noise: Noise, runs: int, size: int) -> list[MeasuredRun]:
    values = make_runs(noise, runs, size, np.random.default_rng(4))
    return [measured(one, index) for index, one in enumerate(values)]


def tally_of(noise: Noise, size: int, runs: int, statistic: str) -> Tally:
    rows = cover(noise, size, runs=runs, spread=0.03, sets=150, seed=2)
    return next(row.tally for row in rows if row.statistic == statistic)


@pytest.mark.parametrize(("size", "runs", "statistic"), [(368, 30, "p99"), (40, 30, "p90"), (72, 10, "p95")])
def test_percentiles_of_skewed_runs_are_held_as_often_as_claimed(size: int, runs: int, statistic: str) -> None:
    tally = tally_of(SKEWED, size, runs, statistic)
    assert tally.printed > 0.95
    assert tally.off_by >= -0.04  # two points, and what chance makes of 150 sets


def test_percentile_between_two_groups_of_samples_has_no_interval_and_says_why() -> None:
    found = inference_estimates(runs_of(FAR_MODES, 5, 100))
    estimate = found.estimates["inference_ms.p90"]
    assert estimate.low is None
    assert estimate.high is None
    assert "no interval: it falls between two groups of samples" in estimate.method
    assert found.refused["inference_ms.p90"].startswith("it falls between two groups")
    assert found.estimates["inference_ms.p50"].low is not None


def test_samples_that_follow_each_other_are_worth_fewer() -> None:
    found = inference_estimates(runs_of(FOLLOWING, 5, 368))
    assert found.estimates["inference_ms.p99"].low is None
    assert "368 of them are worth" in found.refused["inference_ms.p99"]
    assert found.estimates["inference_ms.p50"].low is not None


@pytest.mark.parametrize(("size", "runs", "statistic"), [(40, 3, "p90"), (72, 5, "p95")])
def test_few_samples_that_follow_each_other_closely_have_no_interval(size: int, runs: int, statistic: str) -> None:
    """Some of them look independent by chance, and their intervals held 17 points less than they claimed."""
    assert tally_of(FOLLOWING, size, runs, statistic).printed < 0.05
    refused = inference_estimates(runs_of(FOLLOWING, 5, 1000)).refused
    assert not any(key in refused for key in ("inference_ms.p50", "inference_ms.p90", "inference_ms.p95"))


def test_interval_within_one_run_is_wider_where_samples_follow_each_other() -> None:
    [run] = runs_of(FOLLOWING, 1, 3000)
    mixed = measured(np.random.default_rng(1).permutation(run.durations_ns))
    widths = []
    for one in (run, mixed):
        estimate = inference_estimates([one]).estimates["inference_ms.p90"]
        assert estimate.low is not None
        assert estimate.high is not None
        assert "within one run" in estimate.method
        widths.append(estimate.high - estimate.low)
    assert widths[0] > 1.5 * widths[1]


@pytest.mark.scaled
@pytest.mark.parametrize("name", ["runs of 5 % noise", "skewed runs", "following runs (AR 0.3)"])
def test_interval_after_stopping_is_held_as_often_as_claimed(name: str) -> None:
    tally, made = cover_stopping(RUN_NOISES[name], 0.02, most=50, sets=300 if THOROUGH else 100, seed=3)
    assert made > 10
    assert max(tally.claimed) == 0.95
    assert tally.off_by >= -0.03


def test_runs_that_follow_each_other_are_held_as_often_as_claimed() -> None:
    assert cover_following(0.6, 20, sets=300, seed=1).off_by >= -0.03


def test_a_constant_clock_step_is_no_gap() -> None:
    steps = np.random.default_rng(2).integers(10, 12, (5, 100)) * 1_000_000
    found = inference_estimates([measured(one, index) for index, one in enumerate(steps)])
    assert found.estimates["inference_ms.p90"].low is not None
    assert not found.refused


def test_mean_of_three_runs_has_no_interval_and_says_why() -> None:
    found = single_estimates("throughput_per_s", [10.0, 11.0, 30.0], "runs", full=True).estimates
    assert found["throughput_per_s.mean"].low is None
    assert "Student's t needs 30" in found["throughput_per_s.mean"].method
    assert found["throughput_per_s.p50"].low == 10.0
