"""A function that is timed in this process: how its samples are taken, and what one process can say of it."""

from __future__ import annotations

import time

import numpy as np
import pytest

from prony.analyse.one_process import summarise_calls
from prony.api.results import FunctionResult
from prony.api.time_function import CallTimes, time_function
from prony.model.estimate import Grade
from prony.model.result import Noise

QUIET = Noise(foreign_cpu=0.0, window_s=10.0, cpu_resolution=0.01)


def spin(ns: int) -> None:
    end_ns = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < end_ns:
        pass


def test_a_slow_function_is_timed_call_by_call() -> None:
    called = []

    def call() -> int:
        spin(1_000_000)
        called.append(1)
        return len(called)

    times = time_function(call, runs=20, time_ns=60 * 10**9)
    assert times.calls == 1
    assert len(times.durations_ms) == 20
    assert min(times.durations_ms) >= 1
    assert times.first_result == 1
    # Once before all, once or twice to see how long it takes, and then as often as it says.
    assert len(called) - times.warm_up_calls - 20 in (2, 3)


def test_a_quick_function_is_timed_in_groups_of_calls() -> None:
    called = [0]

    def call() -> None:
        called[0] += 1

    times = time_function(call, runs=50, time_ns=10**9)
    assert times.calls > 10
    assert called[0] >= times.calls * 50
    assert max(times.durations_ms) * times.calls > 0.02  # milliseconds: a sample is long beside a reading of the clock


def test_what_a_function_raises_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        time_function(lambda: 1 / 0, runs=5, time_ns=10**9)


def test_the_interval_holds_the_median_of_this_process_and_says_that_there_is_one_process() -> None:
    values = np.random.default_rng(7).normal(10.0, 0.2, 400)
    found = summarise_calls(values, QUIET)
    assert found.p50.low is not None
    assert found.p50.high is not None
    assert found.p50.low < 10.0 < found.p50.high
    assert found.p50.high - found.p50.low < 0.2
    assert found.verdict.grade is Grade.SUSPECT
    assert [one.code for one in found.verdict.reasons] == ["one_run"]
    assert "Another process" in found.verdict.reasons[0].text


def test_the_interval_holds_the_truth_as_often_as_it_claims_although_calls_follow_each_other() -> None:
    """An autoregressive series: the interval of independent calls would miss its median in most cases."""
    steps = np.random.default_rng(11).normal(0.0, 0.05, (400, 100))
    series = np.full((400, 100), 10.0)
    level = np.zeros(100)
    for at, step in enumerate(steps):
        level = 0.7 * level + step
        series[at] += level
    found = [summarise_calls(one, QUIET).p50 for one in series.T]
    held = sum(one.low is not None and one.high is not None and one.low <= 10.0 <= one.high for one in found)
    assert held >= 86  # of 100, where 95 % is claimed


def test_calls_before_the_steady_state_do_not_count() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(30.0, 0.2, 100), rng.normal(10.0, 0.2, 400)])
    found = summarise_calls(values, QUIET)
    assert found.used.size <= 401
    assert found.p50.value == pytest.approx(10.0, abs=0.1)


@pytest.mark.parametrize(("foreign", "grade"), [(0.5, Grade.VOID), (0.15, Grade.SUSPECT)])
def test_a_disturbed_machine_is_named(foreign: float, grade: Grade) -> None:
    noise = QUIET.model_copy(update={"foreign_cpu": foreign, "busiest": {"make": foreign}})
    found = summarise_calls(np.random.default_rng(7).normal(10.0, 0.2, 400), noise)
    assert found.verdict.grade is grade
    assert "make" in found.verdict.reasons[0].text


def test_a_result_shows_itself_as_text_and_in_a_notebook() -> None:
    durations = tuple(np.random.default_rng(7).normal(10.0, 0.2, 100).tolist())
    found = FunctionResult.of("f<x>", CallTimes(durations, 4, 12, None), QUIET)
    text, page = repr(found), found._repr_html_()
    assert text.startswith("f<x>: 9.962 ms [9.945, 9.999] a call, suspect")
    assert "100 of 4 calls each, after 12 calls to warm up" in text
    assert "One process only" in text
    assert "f&lt;x&gt;" in page
    assert "<svg" in page
    assert "f<x>" not in page
    assert found.frame()["call_ms"].to_list() == list(found.samples_ms)
