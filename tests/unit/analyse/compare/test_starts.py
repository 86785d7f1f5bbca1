"""Results of a service of which some starts are slower: what each kind of result is called, where nothing changed."""

from __future__ import annotations

import pytest

from benchmarks.truth_same import MOST_OPEN, MOST_SHARE, P50, simulate, two_errors
from benchmarks.truth_starts import Starts

from .sides import entry

SETS = 150


def conclusions(design: Starts, factor: float) -> dict[str, float]:
    return simulate(entry({P50: [1.0] * 5}), design, factor, sets=SETS, seed=11)


@pytest.mark.parametrize("runs", [5, 10])
def test_a_start_for_each_run_keeps_the_same_thing_from_being_called_changed(runs: int) -> None:
    told = conclusions(Starts(is_shared=False, runs=runs), 1.0)
    assert max(told.get("regression", 0), told.get("improvement", 0)) <= MOST_SHARE + two_errors(SETS)


def test_a_tenth_slower_is_told_where_each_run_has_its_own_start() -> None:
    told = conclusions(Starts(is_shared=False, runs=10), 1.1)
    assert told["regression"] >= 1 - MOST_OPEN


def test_one_start_for_all_runs_calls_the_same_thing_changed() -> None:
    """This is why a start for each run is the default; a rule that kept the bound here too would make it needless."""
    told = conclusions(Starts(is_shared=True, runs=10), 1.0)
    assert told.get("regression", 0) + told.get("improvement", 0) > 2 * MOST_SHARE
