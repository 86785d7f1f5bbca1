"""The timed loop, on calls whose truth is known."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from prony.runner.child.loop import Stamps, Stop, half_width_of_median, measure, time_calls, warm_up

LATER = 10**18


def test_every_call_gets_a_begin_and_an_end_in_order() -> None:
    stamps = Stamps()
    assert time_calls(lambda: None, stamps, 50, LATER, Stop())
    assert len(stamps) == 50
    flat = [stamp for pair in zip(stamps.begins, stamps.ends, strict=True) for stamp in pair]
    assert flat == sorted(flat)


def test_the_deadline_ends_the_loop_after_the_call_that_passed_it() -> None:
    stamps = Stamps()
    assert not time_calls(lambda: None, stamps, 1000, 0, Stop())
    assert len(stamps) == 1


def test_a_stop_ends_the_loop_after_the_call_that_is_running() -> None:
    stop, calls = Stop(), []

    def call() -> None:
        calls.append(1)
        stop.asked = len(calls) == 7

    assert not time_calls(call, Stamps(), 1000, LATER, stop)
    assert len(calls) == 7


def test_a_given_warm_up_is_done_exactly_and_judges_nothing() -> None:
    stamps = Stamps()
    assert warm_up(lambda: None, stamps, 13, Stop()) is None
    assert len(stamps) == 13


class PlannedClock:
    """Stands still but for what a call takes, so that no number depends on what else a machine does."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PlannedClock:
    made = PlannedClock()
    monkeypatch.setattr("prony.runner.child.loop.time.perf_counter_ns", made)
    return made


def test_the_automatic_warm_up_ends_once_the_medians_agree(clock: PlannedClock) -> None:
    stamps = Stamps()

    def call() -> None:
        clock.now_ns += 5_000_000 if len(stamps) < 20 else 500_000 + len(stamps) % 7

    assert warm_up(call, stamps, None, Stop()) is True
    assert len(stamps) > 20  # it did not stop while the calls were still slow


def test_measuring_ends_by_runs() -> None:
    stamps = Stamps()
    assert measure(lambda: None, stamps, runs=40, max_time_ns=LATER // 2, ci=None, stop=Stop()) == "runs"
    assert len(stamps) == 40


def test_quick_calls_go_on_and_slow_ones_do_not() -> None:
    quick, slow = Stamps(), Stamps()
    assert measure(lambda: None, quick, runs=40, most_runs=90, max_time_ns=LATER // 2, ci=None, stop=Stop()) == "runs"
    assert len(quick) == 90
    nap = partial(time.sleep, 0.7)
    assert measure(nap, slow, runs=3, most_runs=90, max_time_ns=LATER // 2, ci=None, stop=Stop()) == "runs"
    assert len(slow) == 3


def test_measuring_ends_by_time() -> None:
    assert measure(lambda: None, Stamps(), runs=10**6, max_time_ns=1, ci=None, stop=Stop()) == "time"


def test_measuring_ends_once_the_interval_is_tight(clock: PlannedClock) -> None:
    stamps = Stamps()

    def call() -> None:
        clock.now_ns += 100_000 + 1000 * (len(stamps) % 13)

    assert measure(call, stamps, runs=10**6, max_time_ns=20 * 10**9, ci=0.2, stop=Stop()) == "ci"
    assert 30 <= len(stamps) < 10**5


@pytest.mark.parametrize(("durations", "width"), [([100] * 50, 0.0), (list(range(1, 101)), 0.198)])
def test_the_width_of_the_median_follows_the_order_statistics(durations: list[int], width: float) -> None:
    assert half_width_of_median(np.array(durations[::-1])) == pytest.approx(width, abs=0.01)


def test_asking_for_the_width_takes_next_to_no_time() -> None:
    durations = np.random.default_rng(0).integers(9_000, 11_000, 100_000)
    costs_ns = []
    for _ in range(50):
        begin_ns = time.perf_counter_ns()
        half_width_of_median(durations)
        costs_ns.append(time.perf_counter_ns() - begin_ns)
    assert min(costs_ns) / durations.size < 100  # beside an inference of 10 microseconds


def test_a_given_warm_up_has_no_cap_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.runner.child.loop._WARM_CAP_NS", 0)
    stamps = Stamps()
    assert warm_up(lambda: None, stamps, 13, Stop()) is None
    assert len(stamps) == 13
