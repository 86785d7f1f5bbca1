"""The part of a load that counts begins when it is steady and ends when nothing more is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prony.instruments.window import Array, Sent, Window, find_window, is_open
from prony.model.load import Load

S, MS = 1_000_000_000, 1_000_000


def load(**written: Any) -> Load:
    return Load.model_validate(written)


def users(count: int = 8, *, seconds: float = 10, latency_ms: float = 20, slow_s: float = 0, seed: int = 0) -> Sent:
    """Return a closed load that takes three times as long for its first `slow_s` seconds."""
    rng = np.random.default_rng(seed)
    begins: list[float] = []
    ends: list[float] = []
    for user in range(count):
        at = user * 1000.0
        while at < seconds * S:
            took = latency_ms * MS * rng.lognormal(0, 0.1) * (3 if at < slow_s * S else 1)
            begins.append(at)
            ends.append(at + took)
            at += took
    order = np.argsort(begins)
    return sent(np.array(begins)[order], np.array(ends)[order], seconds)


def sent(begins: Array, ends: Array, seconds: float) -> Sent:
    good = np.ones(begins.size, dtype=bool)
    return Sent(begins.astype(np.int64), ends.astype(np.int64), good, (0, round(seconds * S)))


def test_a_steady_load_begins_after_every_users_first_request() -> None:
    found = find_window(users(), load(closed={"concurrency": 8}))
    assert found.steady is True
    assert 15 * MS < found.begin_ns < 0.5 * S
    assert found.end_ns == 10 * S


def test_a_slow_beginning_is_left_out() -> None:
    found = find_window(users(slow_s=2), load(closed={"concurrency": 8}))
    assert found.steady is True
    assert 1.8 * S < found.begin_ns < 3 * S


def test_waves_of_users_who_began_together_are_steady() -> None:
    waves = np.repeat(np.arange(60) * S, 64)
    found = find_window(sent(waves, waves + S, 60), load(closed={"concurrency": 64}))
    assert found.steady is True
    assert found.begin_ns <= 6 * S


def test_latency_that_only_grows_is_never_steady() -> None:
    due = np.linspace(0, 10 * S, 2000)
    found = find_window(sent(due, due * 1.4 + 20 * MS, 10), load(open={"rate": 200}))
    assert found.steady is False
    assert (found.begin_ns, found.end_ns) == (0, 10 * S)


@pytest.mark.parametrize(("share", "steady"), [(0.5, True), (0.7, True), (1.1, False)])
def test_a_queue_is_steady_below_its_capacity_and_not_above(share: float, steady: bool) -> None:
    rng = np.random.default_rng(11)
    dues = np.cumsum(rng.exponential(1 / (share * 1000), 6000))
    taken = rng.exponential(1 / 1000, 6000)
    ends, free = np.zeros(6000), 0.0
    for place, (due, took) in enumerate(zip(dues, taken, strict=True)):
        free = ends[place] = max(free, due) + took
    found = find_window(sent(dues * S, ends * S, dues[-1]), load(open={"rate": share * 1000}))
    assert found.steady is steady


def test_a_first_request_that_takes_nearly_all_the_time_leaves_no_steady_state() -> None:
    one = users(8)
    ends = one.end_ns.copy()
    ends[3] = 9 * S
    found = find_window(Sent(one.begin_ns, ends, one.succeeded, one.sending_ns), load(closed={"concurrency": 8}))
    assert found == Window(0, 10 * S, steady=False)


def test_a_few_requests_are_not_judged() -> None:
    begins = np.arange(20) * 0.5 * S
    found = find_window(sent(begins, begins + 0.4 * S, 10), load())
    assert found.steady is None
    assert found.begin_ns == round(0.4 * S)


@pytest.mark.parametrize(
    ("written", "begin"),
    [({"warmup": "none"}, 0), ({"warmup": "3s"}, 3 * S), ({"stages": [{"duration": "10s", "rate": 5}]}, 0)],
)
def test_what_the_recipe_says_is_done(written: dict[str, Any], begin: int) -> None:
    assert find_window(users(slow_s=2), load(**written)) == Window(begin, 10 * S, steady=None)


def test_mlperf_counts_everything_until_the_last_reply() -> None:
    one = users(1)
    found = find_window(one, load(mlperf={"scenario": "single-stream"}))
    assert found == Window(0, int(one.end_ns.max()))


def test_nothing_has_a_window_of_no_length() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert find_window(Sent(none, none, none.astype(bool)), load()).length_ns == 0


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, False),
        ({"open": {"rate": 1}}, True),
        ({"stages": [{"duration": "1s", "concurrency": 2}]}, False),
        ({"mlperf": {"scenario": "server", "rate": 2}}, True),
        ({"search": {"over": "rate"}, "slo": {"e2e_ms": 1}}, True),
    ],
)
def test_an_open_load_is_known_as_one(written: dict[str, Any], expected: bool) -> None:
    assert is_open(load(**written)) is expected
