"""Closed loads in which each user has a number of requests of its own: nobody sends more or fewer than that."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from prony.load.schedule import plan
from prony.model.load import Load

from .house import OK, Visit, column, load_on, prepared, serving


def sent_by_each(visits: list[tuple[int, bytes]]) -> list[int]:
    return list(Counter(connection for connection, _ in visits).values())


@pytest.mark.parametrize("processes", [1, 3])
def test_each_user_sends_its_own_number_however_many_processes_send(tmp_path: Path, processes: int) -> None:
    with serving() as server:
        users = {"concurrency": 8, "requests": 125}
        outcome = load_on(server, tmp_path, prepared(server.endpoint, 7), processes=processes, closed=users)
    assert len(outcome) == len(server.visits) == 1000
    assert sent_by_each(server.visits) == [125] * 8
    assert len(set(column(outcome, "index"))) == 1000


def test_a_fast_user_does_not_send_for_a_slow_one(tmp_path: Path) -> None:
    async def first_is_slow(visit: Visit) -> None:
        if visit.connection == 0:
            await asyncio.sleep(0.02)
        visit.write(OK)

    with serving(first_is_slow) as server:
        outcome = load_on(server, tmp_path, closed={"concurrency": 4, "requests": 20})
    assert sent_by_each(server.visits) == [20] * 4
    # Of the whole time there were four users only until the first of them was done.
    assert outcome.full_until_ns is not None
    assert outcome.begin_ns < outcome.full_until_ns < outcome.end_ns


def test_users_who_think_have_their_own_number_too(tmp_path: Path) -> None:
    with serving() as server:
        load_on(server, tmp_path, closed={"concurrency": 3, "requests": 5, "think": "1ms"})
    assert sent_by_each(server.visits) == [5] * 3


def test_a_number_for_all_ends_it_before_each_user_has_sent_its_own(tmp_path: Path) -> None:
    with serving() as server:
        load_on(server, tmp_path, closed={"concurrency": 4, "requests": 100}, requests=50)
    assert len(server.visits) == 50


def test_users_come_one_after_the_other_and_the_last_one_sends_all_of_its_own(tmp_path: Path) -> None:
    with serving() as server:
        users = {"concurrency": 3, "requests": 4, "stagger": "150ms"}
        outcome = load_on(server, tmp_path, closed=users, duration="5m")
    assert sent_by_each(server.visits) == [4] * 3
    came = sorted(outcome.records["sent_ns"] - outcome.begin_ns)
    assert [int(at) // 150_000_000 >= number for number, at in enumerate(came[::4])] == [True] * 3
    assert column(outcome, "cause") == [0] * 12


def test_a_schedule_knows_how_many_there_are_in_all() -> None:
    each = Load.model_validate({"closed": {"concurrency": 8, "requests": 1000}})
    assert (plan(each, base=Path()).total, each.asked_requests, each.duration_ns) == (8000, 8000, None)
    fewer = Load.model_validate({"closed": {"concurrency": 8, "requests": 1000}, "requests": 500})
    assert plan(fewer, base=Path()).total == fewer.asked_requests == 500


def test_more_requests_than_can_be_numbered_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 2 billion"):
        Load.model_validate({"closed": {"concurrency": 100_000, "requests": 100_000_000}})
