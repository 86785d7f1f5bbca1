"""How many requests are made beforehand, and which keys they are about."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from prony.plugins.drivers.request_mix import MOST_BYTES, how_many, pick_numbers, shared_out
from prony.ports.driver import Endpoint, Wants


@pytest.mark.parametrize(
    ("count", "bytes_each", "expected"),
    [(None, 10, 1000), (50, 10, 50), (5000, 10, 1000), (None, MOST_BYTES // 100, 100), (None, MOST_BYTES, 16)],
)
def test_as_many_are_made_as_are_sent_and_memory_holds(count: int | None, bytes_each: int, expected: int) -> None:
    wants = Wants(Endpoint(), None, seed=1, count=count)
    assert how_many(wants, 1000, bytes_each=bytes_each) == expected


def test_the_first_of_two_keys_is_asked_for_as_often_as_zipf_says() -> None:
    found = Counter(pick_numbers(np.random.default_rng(1), 2, 30_000, skew=1.0).tolist())
    assert found[0] / found[1] == pytest.approx(2.0, rel=0.05)
    even = Counter(pick_numbers(np.random.default_rng(1), 2, 30_000, skew=0).tolist())
    assert even[0] / even[1] == pytest.approx(1.0, rel=0.05)


def test_shares_are_kept_exactly_and_nothing_comes_that_has_none() -> None:
    names = shared_out(np.random.default_rng(1), {"a": 3, "b": 0, "c": 1}, 100)
    assert Counter(names) == {"a": 75, "c": 25}
    assert names[:75] != ["a"] * 75
