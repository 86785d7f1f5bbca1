"""When enough runs have been made."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import THOROUGH
from prony.stats.dependence import lag1
from prony.stats.stopping import achieved_precision, tight_enough


def test_nine_equal_runs_are_not_enough_and_ten_are() -> None:
    assert achieved_precision([3.0] * 9) is None
    assert not tight_enough([3.0] * 9, 0.5)
    assert achieved_precision([3.0] * 10) == 0
    assert tight_enough([3.0] * 10, 0.01)


def test_the_width_of_ten_runs_leaves_the_outermost_out() -> None:
    values = [100.0, 103.0, 99.0, 102.0, 98.0, 101.0, 110.0, 90.0, 100.0, 101.0]
    assert achieved_precision(values) == pytest.approx(2.5 / 100.5)
    assert tight_enough(values, 0.025)
    assert not tight_enough(values, 0.024)


def test_runs_that_follow_each_other_count_for_less() -> None:
    rising = [100 + 0.1 * i for i in range(60)]
    mixed = [rising[(i * 37) % 60] for i in range(60)]
    slow, quick = achieved_precision(rising), achieved_precision(mixed)
    assert lag1(np.array(mixed)) < 0.2 < lag1(np.array(rising))
    assert quick is not None
    assert slow is None or slow > 2 * quick


@pytest.mark.parametrize("values", [[], [1.0], [math.nan] * 12, [1.0] * 11 + [math.inf], [0.0] * 12])
def test_what_has_no_width_is_never_tight(values: list[float]) -> None:
    assert achieved_precision(values) is None
    assert not tight_enough(values, 0.5)


@given(st.lists(st.floats(1, 1e6), min_size=10, max_size=40))
def test_units_do_not_change_the_width(values: list[float]) -> None:
    first, second = achieved_precision(values), achieved_precision([value * 1024 for value in values])
    assert first == second


@pytest.mark.scaled
def test_stopping_by_this_rule_keeps_most_of_the_confidence() -> None:
    covered = []
    for seed in range(300 if THOROUGH else 100):
        values = np.exp(np.random.default_rng(seed).normal(0, 0.05, 200)).tolist()
        count = next(n for n in range(10, 201) if tight_enough(values[:n], 0.02) or n == 200)
        median, width = float(np.median(values[:count])), achieved_precision(values[:count])
        assert width is not None
        covered.append(abs(median - 1) <= 2 * width * median)
    assert np.mean(covered) >= 0.9
