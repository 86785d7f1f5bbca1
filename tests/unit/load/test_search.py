"""The search for the highest load that holds: what it asks, where it stops, what it admits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import InputError
from prony.load.schedule import RateStep, plan
from prony.load.search import (
    ATTEMPTS,
    Found,
    LoadSearch,
    SloShare,
    all_held,
    judge_share,
    plan_search,
    probe_load,
    slo_as_shares,
)
from prony.model.load import Load

Answer = Callable[[float], bool | None]


def searched(search: LoadSearch, answer: Answer) -> tuple[Found, list[float]]:
    asked: list[float] = []
    while (load := search.next()) is not None:
        asked.append(load)
        assert len(asked) < 200
        search.tell(load, answer(load))
    return search.current_result(), asked


def test_it_doubles_until_it_fails_and_then_halves_the_gap() -> None:
    found, asked = searched(LoadSearch(1, 4096, precision=0.05), lambda load: load <= 100)
    assert asked == [1, 2, 4, 8, 16, 32, 64, 128, 96, 112, 104, 100]
    assert (found.highest_held, found.lowest_not_held) == (100, 104)
    assert found.notes == ()
    assert [probe.load for probe in found.probes] == asked


@given(st.integers(1, 4096), st.floats(0.001, 0.5))
def test_it_finds_any_limit_of_users_as_closely_as_asked(limit: int, precision: float) -> None:
    found, asked = searched(LoadSearch(1, 4096, precision=precision), lambda load: load <= limit)
    assert found.highest_held is not None
    assert found.highest_held <= limit
    if limit == 4096:
        assert found.lowest_not_held is None
    else:
        assert found.lowest_not_held is not None
        assert limit < found.lowest_not_held
        gap = found.lowest_not_held - found.highest_held
        assert gap <= max(1, precision * found.lowest_not_held)
    assert len(asked) == len(set(asked)) <= 26
    assert all(load == int(load) for load in asked)


@given(st.floats(0.5, 1e5), st.floats(0.001, 0.5))
def test_it_finds_any_rate_as_closely_as_asked(limit: float, precision: float) -> None:
    found, _ = searched(LoadSearch(0.5, 2e5, precision=precision, integral=False), lambda load: load <= limit)
    assert found.highest_held is not None
    assert found.lowest_not_held is not None
    assert found.highest_held <= limit < found.lowest_not_held
    assert found.lowest_not_held - found.highest_held <= precision * found.lowest_not_held


def test_it_stops_at_the_end_and_says_that_it_did() -> None:
    found, asked = searched(LoadSearch(3, 20), lambda _: True)
    assert asked == [3, 6, 12, 20]
    assert (found.highest_held, found.lowest_not_held) == (20, None)
    assert found.notes == ("20 met the SLO, and no higher load was tried",)


def test_nothing_that_holds_is_not_found_with_the_evidence() -> None:
    found, asked = searched(LoadSearch(4, 64), lambda _: False)
    assert asked == [4]
    assert (found.highest_held, found.lowest_not_held) == (None, 4)
    assert found.notes == ("no load met the SLO",)


def test_what_is_open_is_probed_again_and_then_counts_as_not_held() -> None:
    search = LoadSearch(1, 64)
    search.tell(1, True)
    for attempt in range(1, ATTEMPTS + 1):
        assert (search.next(), search.attempt) == (2, attempt)
        search.tell(2, None)
    assert search.next() is None
    found = search.current_result()
    assert (found.highest_held, found.lowest_not_held) == (1, 2)
    assert found.notes == ("2 was inconclusive after 3 probes: it counts as not met",)


def test_a_second_probe_may_decide() -> None:
    answers = iter([None, True, None, None, False])
    found, asked = searched(LoadSearch(1, 64), lambda _: next(answers))
    assert asked == [1, 1, 2, 2, 2]
    assert (found.highest_held, found.lowest_not_held) == (1, 2)
    assert found.notes == ()


def test_a_higher_load_that_held_after_a_lower_one_failed_is_told() -> None:
    search = LoadSearch(1, 64)
    search.tell(32, True)
    search.tell(8, False)
    search.tell(4, True)
    assert search.next() == 6
    found, _ = searched(search, lambda load: load <= 6)
    assert (found.highest_held, found.lowest_not_held) == (6, 7)
    assert found.notes == ("32 met the SLO although the lower load 7 did not: the limit is not sharp",)


def test_a_load_that_both_held_and_did_not_counts_as_not_held() -> None:
    search = LoadSearch(1, 64)
    for load, held in ((1, True), (2, True), (2, False)):
        search.tell(load, held)
    found = search.current_result()
    assert search.next() is None
    assert (found.highest_held, found.lowest_not_held) == (1, 2)
    assert found.notes == ("2 once met the SLO and once did not: it counts as not met",)


def test_a_search_goes_up() -> None:
    with pytest.raises(InputError, match="must be positive"):
        LoadSearch(10, 5)
    assert LoadSearch(0.2, 5).next() == 1


@pytest.mark.parametrize(
    ("good", "total", "share", "held"),
    [
        (380, 380, 0.99, None),
        (381, 381, 0.99, True),
        (0, 0, 0.99, None),
        (985, 1000, 0.99, None),
        (950, 1000, 0.99, False),
        (999, 1000, 0.99, True),
        (59, 100, 0.5, None),
        (60, 100, 0.5, True),
    ],
)
def test_a_probe_is_judged_on_its_whole_interval(good: int, total: int, share: float, held: bool | None) -> None:
    assert judge_share(good, total, share) is held


def test_a_probe_of_a_service_that_misses_its_share_is_seldom_taken_to_hold() -> None:
    good = np.random.default_rng(5).binomial(1000, 0.98, size=2000)
    answers = [judge_share(int(count), 1000, 0.99) for count in good]
    assert answers.count(True) <= 2
    assert answers.count(False) > 800


def test_limits_hold_together_or_not_at_all() -> None:
    assert all_held([True, True]) is True
    assert all_held([True, None]) is None
    assert all_held([None, False, True]) is False


def test_an_slo_is_read_as_shares() -> None:
    slo = {"ttft_ms.p99": 200.0, "tpot_ms.p99.9": 30.0, "e2e_ms": 900.0}
    assert slo_as_shares(slo) == (
        SloShare("ttft_ms", 0.99, 200),
        SloShare("tpot_ms", 0.999, 30),
        SloShare("e2e_ms", 0.99, 900),
    )
    for key in ("ttft_ms.mean", "ttft_ms.p0", "ttft_ms.p100"):
        with pytest.raises(InputError, match="cannot use"):
            slo_as_shares({key: 1.0})


def test_each_probe_is_a_load_of_its_own() -> None:
    users = Load.model_validate({"search": {"probe": "5s", "high": 64}, "slo": {"e2e_ms.p99": 10}})
    search = plan_search(users)
    assert search.next() == 1
    made = plan(probe_load(users, 8), base=Path())
    assert made.steps == (RateStep(0, 8),)
    assert made.duration_ns == 5 * 10**9
    assert plan(probe_load(users, 8, attempt=3), base=Path()).duration_ns == 20 * 10**9
    rates = Load.model_validate({"search": {"over": "rate", "arrivals": "constant"}, "slo": {"e2e_ms.p99": 10}})
    probe = probe_load(rates, 12.5)
    assert probe.slo == rates.slo
    assert plan(probe, base=Path()).total == 125
    with pytest.raises(InputError, match="not a search"):
        plan_search(probe)
    with pytest.raises(InputError, match="not a search"):
        probe_load(probe, 1)


def test_low_loads_of_few_requests_do_not_end_a_search() -> None:
    # So many requests a user in a probe, and all are good up to 100 users: 381 are needed to be sure of p99.
    search, asked = LoadSearch(1, 4096), []
    while (load := search.next()) is not None:
        asked.append(load)
        total = int(load * 10)
        search.count(load, [(total if load <= 100 else total // 2, total, 0.99)])
    assert asked == [1, 2, 4, 8, 16, 32, 64, 128, 96, 112, 104, 100]
    assert search.current_result().highest_held == 100
    assert search.current_result().notes == ()


def test_the_answer_itself_is_probed_longer_before_it_is_given() -> None:
    search, asked = LoadSearch(1, 64), []
    while (load := search.next()) is not None:
        asked.append((load, search.attempt))
        total = 60 * 2 ** (search.attempt - 1)
        search.count(load, [(total if load <= 2 else 0, total, 0.99)])
    assert asked == [(1, 1), (2, 1), (4, 1), (3, 1), (2, 2), (2, 3)]
    found = search.current_result()
    assert (found.highest_held, found.lowest_not_held) == (2, 3)
    assert found.notes == ("2 was within the SLO, but 3 probes had too few requests to be sure",)


def test_an_answer_that_fails_when_it_is_probed_longer_is_given_up() -> None:
    search = LoadSearch(1, 64)
    search.tell(1, None, leans=True)
    search.tell(2, None, leans=True)
    search.tell(4, held=False)
    search.tell(3, held=False)
    assert (search.next(), search.attempt) == (2, 2)
    search.tell(2, held=False)
    assert (search.next(), search.attempt) == (1, 2)
    search.tell(1, held=True)
    assert search.next() is None
    assert search.current_result().highest_held == 1


def test_a_probe_of_no_requests_leans_to_nothing() -> None:
    search = LoadSearch(1, 64)
    search.count(1, [(0, 0, 0.99)])
    assert (search.next(), search.attempt) == (1, 2)


@given(st.integers(1, 300), st.integers(1, 50), st.integers(0, 2**32))
def test_it_always_ends_and_its_answer_lies_below_every_failure(limit: int, requests: int, seed: int) -> None:
    draws = np.random.default_rng(seed)
    search = LoadSearch(1, 512)
    for _ in range(100):
        load = search.next()
        if load is None:
            break
        total = int(load) * requests * 2 ** (search.attempt - 1)
        search.count(load, [(int(draws.binomial(total, 0.999 if load <= limit else 0.95)), total, 0.99)])
    assert search.next() is None
    found = search.current_result()
    failed = [probe.load for probe in found.probes if probe.held is False]
    assert found.highest_held is None or all(found.highest_held < load for load in failed)
