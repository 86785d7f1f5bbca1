"""A knee is found where there is one, is never found on a straight line, and stays the same in another unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples, only_slowly
from prony.stats.knee import find_knee

pytestmark = pytest.mark.scaled
DOUBLING = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
SHARE = 0.2
TRIES = count_examples(60)
Rule = Callable[[float], float]


def runs_of(
    rule: Rule, levels: list[float], noise: float, rng: np.random.Generator, count: int = 3
) -> list[list[float]]:
    return [(rule(level) * np.exp(rng.normal(0, noise, count))).tolist() for level in levels]


def states(rule: Rule, noise: float, levels: list[float] = DOUBLING) -> Counter[str]:
    rng = np.random.default_rng(7)
    found = [find_knee(levels, runs_of(rule, levels, noise, rng), SHARE) for _ in range(TRIES)]
    return Counter(one.state for one in found if one is not None)


@pytest.mark.parametrize("noise", [0.02, *only_slowly(0.001, 0.05, 0.1)])
@pytest.mark.parametrize("levels", [DOUBLING, [10, 20, 30, 40, 50], [1, 2, 4, 8]])
def test_a_straight_line_has_no_knee(noise: float, levels: list[float]) -> None:
    assert states(lambda x: 40 * x, noise, levels)["bends"] == 0


def test_a_line_that_does_not_begin_at_nothing_has_none_either() -> None:
    assert states(lambda x: 100 + 10 * x, 0.02)["bends"] == 0


@pytest.mark.parametrize("true", [2.0, 4.0, 8.0, 12.0, 16.0])
def test_a_plateau_is_found_where_it_begins(true: float) -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(TRIES):
        found = find_knee(DOUBLING, runs_of(lambda x: min(x, true), DOUBLING, 0.02, rng), SHARE)
        assert found is not None
        assert found.state == "bends"
        assert found.low is not None
        assert found.high is not None
        covered += found.low * 0.999 <= true <= found.high * 1.001
    assert covered >= 0.9 * TRIES


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        (lambda x: x if x <= 8 else 8 * (8 / x) ** 0.5, "bends"),
        (lambda x: 100 * x / (x + 4), "bends"),
        (lambda _: 7.0, "flat"),
    ],
    ids=["collapse", "slow fading", "nothing gained from the first level on"],
)
def test_other_shapes_are_called_what_they_are(rule: Rule, state: str) -> None:
    assert states(rule, 0.02)[state] >= 0.95 * TRIES


def test_runs_that_scatter_too_much_support_no_claim() -> None:
    assert states(lambda x: min(x, 16.0), 0.4)["unclear"] >= 0.75 * TRIES


def test_three_levels_one_run_each_and_no_throughput_are_refused() -> None:
    assert find_knee([1, 2, 4], [[1, 1.1], [2, 2.1], [2, 2.1]], SHARE) is None
    assert find_knee([1, 2, 4, 8], [[1], [2], [2], [2]], SHARE) is None
    assert find_knee([1, 2, 4, 8], [[1, 1], [2, 2], [0, 0], [2, 2]], SHARE) is None


def test_runs_that_are_exactly_equal_are_no_trouble() -> None:
    found = find_knee(DOUBLING, [[min(x, 8.0)] * 3 for x in DOUBLING], SHARE)
    assert found is not None
    assert found.state == "bends"
    assert found.at == pytest.approx(8)


@settings(max_examples=count_examples(40), deadline=None)
@given(
    seed=st.integers(0, 2**31), rate=st.sampled_from([1e-3, 1.0, 1e6]), load=st.sampled_from([0.25, 1.0, 512.0]),
    true=st.sampled_from([3.0, 8.0, 1e9]),
)  # fmt: skip
def test_another_unit_of_rate_or_load_changes_no_state(seed: int, rate: float, load: float, true: float) -> None:
    runs = runs_of(lambda x: min(x, true), DOUBLING, 0.03, np.random.default_rng(seed))
    here = find_knee(DOUBLING, runs, SHARE)
    there = find_knee([x * load for x in DOUBLING], [[v * rate for v in group] for group in runs], SHARE)
    assert here is not None
    assert there is not None
    assert there.state == here.state
    assert (there.at is None) == (here.at is None)
    if here.at is not None and there.at is not None:
        assert there.at == pytest.approx(here.at * load, rel=0.05)
