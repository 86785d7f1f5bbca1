"""The mock's parts alone: the wheel, the truth, and what is cut in two."""

from __future__ import annotations

import asyncio
from time import perf_counter_ns

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.load.mock import ground_truth, timer
from prony.load.mock.ground_truth import Truth
from prony.load.mock.respond import Faults, Works, halves
from prony.load.mock.script import LAST_CHUNK, chunk
from prony.load.mock.start import MockOptions
from prony.load.mock.timer import Wheel
from prony.load.poll import Timer

MS = 1_000_000


class Beat:
    """Something due a few times; keeps when it was done."""

    def __init__(self, times: int, gap_ns: int, done: list[tuple[int, int]], at_end: asyncio.Event) -> None:
        self._left = times
        self._gap_ns = gap_ns
        self._done = done
        self._at_end = at_end

    def step(self, due_ns: int, now_ns: int) -> int:
        self._done.append((due_ns, now_ns))
        self._left -= 1
        return due_ns + self._gap_ns if self._left else 0

    def end(self, _now_ns: int) -> None:
        self._at_end.set()


async def turned() -> list[tuple[int, int]]:
    """Return (due, done) of two beats that interleave."""
    wheel = Wheel(asyncio.get_running_loop())
    done: list[tuple[int, int]] = []
    ends = [asyncio.Event(), asyncio.Event()]
    begin = perf_counter_ns()
    wheel.at(begin + 3 * MS, Beat(5, 2 * MS, done, ends[0]))
    wheel.at(begin + 2 * MS, Beat(5, 2 * MS, done, ends[1]))
    for end in ends:
        await asyncio.wait_for(end.wait(), 180)
    wheel.close()
    return done


def test_the_wheel_does_everything_in_order_and_nothing_early() -> None:
    done = asyncio.run(turned())
    assert len(done) == 10
    assert [due for due, _ in done] == sorted(due for due, _ in done)
    assert all(now >= due for due, now in done)


def test_the_wheel_turns_by_the_loops_timer_where_there_is_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoAlarm(Timer):
        def __init__(self) -> None:
            self.fd = -1

    monkeypatch.setattr(timer, "Timer", NoAlarm)
    assert all(now >= due for due, now in asyncio.run(turned()))


def test_in_flight_is_averaged_over_time() -> None:
    truth = Truth()
    truth.began(100)
    truth.began(200)
    truth.note_end(300)
    truth.note_end(500)
    assert truth.in_flight_mean(10_000) == pytest.approx((200 + 300) / 400)
    assert truth.peak == 2


def test_requests_that_are_in_flight_count_until_now() -> None:
    truth = Truth()
    truth.began(100)
    assert truth.in_flight_mean(300) == 1
    truth.reset(300)
    truth.note_end(500)
    assert truth.in_flight_mean(1000) == 1


def test_old_values_are_let_go_and_counts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground_truth, "_MOST", 100)
    truth = Truth()
    for number in range(250):
        truth.arrivals.append(number)
        truth.late.append(number)
    truth.trim()
    assert truth.requests == 250
    assert list(truth.late) == list(range(175, 250))


def test_quantiles_are_values_that_were_there() -> None:
    truth = Truth()
    truth.late.extend([1 * MS, 2 * MS, 3 * MS, 10 * MS])
    found = truth.summary(0)["lateness_ms"]
    assert (found["count"], found["mean"], found["p50"], found["max"]) == (4, 4.0, 2.0, 10.0)
    assert found["p99"] == 10.0


@given(st.lists(st.text(min_size=1).map(str.encode), max_size=5))
def test_halves_say_the_same_in_twice_as_many_chunks(contents: list[bytes]) -> None:
    coded = b"".join(map(chunk, contents)) + LAST_CHUNK
    *parts, last = halves(coded)
    bodies = [part.partition(b"\r\n")[2].removesuffix(b"\r\n") for part in parts]
    assert last == LAST_CHUNK
    assert b"".join(bodies) == b"".join(contents)
    assert len(parts) == sum(min(2, len(content)) for content in contents)


def test_streams_that_come_together_get_places_apart_within_one_gap() -> None:
    loop = asyncio.new_event_loop()
    options = MockOptions(itl_ns=MS)
    works = Works(options, Truth(), Wheel(loop), Faults(options))
    try:
        places = [works.slot(50 * MS) for _ in range(200)]
        assert works.slot(60 * MS) == 60 * MS
    finally:
        works.wheel.close()
        loop.close()
    assert places[0] == 50 * MS
    assert len(set(places[:80])) == 80
    assert max(places) == 51 * MS
