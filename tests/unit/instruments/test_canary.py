"""The canary: two pieces of work that take as long each time as the machine makes them."""

from __future__ import annotations

from prony.instruments.canary import Canary, read_canary


def test_both_pieces_of_work_take_time() -> None:
    found = read_canary()
    assert 0.01 < found.compute_ms < 1_000
    assert 0.01 < found.memory_ms < 1_000


def test_a_repetition_that_follows_at_once_has_the_reading_after_the_last_one() -> None:
    now_ns = 0
    canary = Canary(lambda: now_ns)
    last = canary.read_after()
    now_ns = 99_000_000
    assert canary.read_before() is last
    now_ns = 100_000_000
    assert canary.read_before() is not last
