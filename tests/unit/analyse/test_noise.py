"""What equal runs tell of their machine."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from prony.analyse import noise
from prony.app.deep_calibration import differ
from prony.model.estimate import Estimate
from prony.stats.spread import detectable_change


def runs(cv: float, count: int = 40, seed: int = 1) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(value) for value in 10 * np.exp(rng.normal(0, cv, count))]


@cache
def judge_equal_runs(cv: float) -> dict[str, Estimate]:
    """Return the figures by the real rule, which is asked a thousand times."""
    return noise.noise_figures(runs(cv), differ)


@pytest.mark.parametrize(
    ("cv", "name"),
    [
        (0.02, "normal"),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in ((0.002, "quiet"), (0.05, "noisy"), (0.2, "unusable"))
        ),
    ],
)
def test_the_class_follows_from_the_spread_of_equal_runs(cv: float, name: str) -> None:
    figures = judge_equal_runs(cv)
    assert noise.noise_class(figures["run_noise"].value) == name
    assert figures["run_noise"].value == pytest.approx(cv, rel=0.5)


def test_more_runs_show_smaller_changes_and_the_noise_says_how_small() -> None:
    figures = judge_equal_runs(0.02)
    seen = [figures[f"seen_with_{size}_runs"].value for size in noise.SIZES]
    assert seen == sorted(seen, reverse=True)
    assert seen[1] == detectable_change(figures["run_noise"].value, 10, is_known=True)


def test_the_rule_of_a_comparison_seldom_tells_equal_runs_apart() -> None:
    rate = judge_equal_runs(0.02)["false_alarm_rate"]
    assert rate.value <= 0.01
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low <= rate.value <= rate.high


def test_a_rule_that_is_wrong_too_often_is_found_out_and_tightened() -> None:
    figures = noise.noise_figures(runs(0.03), lambda one, other: float(one.mean()) < float(other.mean()))
    assert figures["false_alarm_rate"].value == pytest.approx(0.5, abs=0.06)
    assert noise.alpha_for(figures) == pytest.approx(0.01 * 0.01 / figures["false_alarm_rate"].value)


def test_where_the_rule_holds_the_level_stays_as_it_is() -> None:
    rate = Estimate(value=0.004, unit="1", count=1000, method="tried")
    assert noise.alpha_for({"false_alarm_rate": rate}) == noise.NOMINAL
    assert noise.alpha_for({}) == noise.NOMINAL


def test_a_machine_that_drifts_is_told_so() -> None:
    values = [value * (1 + 0.002 * place) for place, value in enumerate(runs(0.005))]
    assert noise.drift(np.array(values)) == pytest.approx(0.078, abs=0.02)
    assert any("drifted" in text for text in noise.warnings(values))


def test_runs_that_follow_each_other_are_told_so() -> None:
    rng, level, values = np.random.default_rng(3), 0.0, []
    for _ in range(60):
        level = 0.8 * level + float(rng.normal(0, 0.01))
        values.append(10 * float(np.exp(level)))
    assert any("runs are correlated" in text for text in noise.warnings(values))


def test_independent_runs_give_no_warning() -> None:
    assert sum(bool(noise.warnings(runs(0.02, seed=seed))) for seed in range(50)) <= 5


def never(_one: object, _other: object) -> bool:
    """A rule for where none is asked: the real one is costly."""
    return False


def test_whole_results_that_lie_apart_are_told_from_runs_that_vary() -> None:
    rng = np.random.default_rng(5)
    moved = [float(level * value) for level in np.exp(rng.normal(0, 0.04, 40)) for value in runs(0.005, 5)]
    assert noise.noise_figures(moved, never)["session_spread"].value == pytest.approx(0.04, rel=0.4)
    alike = [noise.noise_figures(runs(0.02, seed=seed), never)["session_spread"].value for seed in range(20)]
    assert float(np.median(alike)) < 0.006
    assert "no more than their runs explain" in noise.describe_sessions(0.0)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0, 0.0]])
def test_too_little_to_judge_gives_nothing(values: list[float]) -> None:
    assert noise.noise_figures(values, differ) == {}


def test_runs_that_never_vary_see_everything_and_raise_no_alarm() -> None:
    figures = noise.noise_figures([5.0] * 40, differ)
    assert figures["run_noise"].value == 0
    assert figures["false_alarm_rate"].value == 0
    assert noise.warnings([5.0] * 40) == []
