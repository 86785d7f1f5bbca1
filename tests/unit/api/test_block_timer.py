"""Blocks of a program that are timed by name."""

from __future__ import annotations

import threading
import time

import pytest

from prony.api.block_timer import Timers


def spin(ns: int) -> None:
    end_ns = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < end_ns:
        pass


def test_each_run_of_a_block_is_counted_and_takes_what_it_took() -> None:
    timer = Timers()
    for ns in (1_000_000, 3_000_000, 2_000_000):
        with timer("spin"):
            spin(ns)
    with timer("other"):
        pass
    first, second = timer.summary()
    assert (first.name, first.runs, second.name, second.runs) == ("spin", 3, "other", 1)
    assert [ms >= least for ms, least in zip(timer.durations_ms("spin"), (1, 3, 2), strict=True)] == [True] * 3
    assert first.min_ms >= 1
    assert first.p50_ms >= 2
    assert first.max_ms >= 3
    assert first.total_ms == pytest.approx(sum(timer.durations_ms("spin")))
    assert "spin" in repr(timer.summary())


def test_the_median_of_an_even_number_of_runs_lies_between_the_two_in_the_middle() -> None:
    timer = Timers()
    for _ in range(4):
        with timer("x"):
            pass
    low, high = sorted(timer.durations_ms("x"))[1:3]
    assert timer.summary()[0].p50_ms == pytest.approx((low + high) / 2)


def test_threads_lose_no_run_and_blocks_of_one_name_may_nest() -> None:
    timer = Timers()

    def work() -> None:
        for _ in range(2000):
            with timer("outer"), timer("inner"), timer("outer"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.name: one.runs for one in timer.summary()} == {"outer": 16_000, "inner": 8_000}


def test_a_block_that_fails_is_counted_and_its_error_goes_on() -> None:
    timer = Timers()
    with pytest.raises(ValueError, match="no"), timer("fails"):
        raise ValueError("no")
    assert timer.summary()[0].runs == 1


def test_what_was_timed_can_be_forgotten() -> None:
    timer = Timers()
    with timer("x"):
        pass
    timer.reset()
    assert timer.summary() == ()
    assert repr(timer.summary()) == "no block was timed"
