"""Which records of a machine let a new level be news."""

from __future__ import annotations

import numpy as np
import pytest

from prony.analyse.history.machine_record import CALM_RESULTS, LONGEST_RECORD, record_before
from prony.analyse.history.machine_speed import MachineSpeeds
from prony.stats.quantiles import Array

NO_CANARY = MachineSpeeds()
EFFECT = 0.05


def noise(seed: int = 1, count: int = 60, sd: float = 0.01) -> Array:
    found: Array = np.random.default_rng(seed).normal(0, sd, count)
    return found


def is_calm(values: Array, *canary: Array, borders: tuple[int, ...] = ()) -> bool:
    return record_before(values, MachineSpeeds(("compute_ms",) * len(canary), canary), borders).is_calm(EFFECT)


def test_nearly_all_records_of_independent_results_are_calm() -> None:
    found = [is_calm(noise(seed)) for seed in range(300)]
    assert np.mean(found) > 0.95


def test_too_few_results_are_never_calm() -> None:
    assert not is_calm(noise(count=CALM_RESULTS - 1))
    assert is_calm(noise(count=CALM_RESULTS))


def test_equal_results_are_calm() -> None:
    assert is_calm(np.zeros(60))


def test_a_machine_that_went_to_another_speed_and_back_is_not_calm() -> None:
    values = noise()
    values[20:30] += EFFECT
    assert not is_calm(values)


@pytest.mark.parametrize("away", [EFFECT, -EFFECT])
def test_two_results_in_a_row_at_the_new_level_are_a_visit_up_or_down(away: float) -> None:
    values = noise(sd=0.005)
    values[20:22] += away
    assert not is_calm(values)


def test_one_spike_is_no_visit() -> None:
    values = noise(sd=0.005)
    values[20] += 0.5
    assert is_calm(values)


def test_a_trend_is_not_calm() -> None:
    assert not is_calm(noise() + np.linspace(0, 0.03, 60))


def test_results_that_follow_each_other_are_not_calm() -> None:
    assert not is_calm(np.cumsum(noise(sd=0.004)))


def test_a_change_that_was_decided_to_be_real_is_no_move_of_the_machine() -> None:
    values = noise()
    values[40:] += EFFECT
    assert not is_calm(values)
    assert is_calm(values, borders=(40,))


def test_what_happened_before_the_longest_record_is_forgotten() -> None:
    values = noise(count=LONGEST_RECORD + 40)
    values[10:30] += EFFECT
    assert is_calm(values)


def test_a_canary_that_shows_all_moves_of_the_machine_leaves_a_calm_record() -> None:
    machine = np.where(np.arange(60) // 15 % 2, EFFECT, 0.0)
    assert is_calm(noise() + machine, machine + noise(2, sd=0.003))


def test_a_canary_that_shows_half_of_them_does_not() -> None:
    machine = np.where(np.arange(60) // 15 % 2, EFFECT, 0.0)
    assert not is_calm(noise() + machine, machine / 2 + noise(2, sd=0.003))
