"""Processes that work for a server: what one order takes has limits, and whoever goes away frees them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from prony.app.fleet.closing import ClosingError
from prony.app.fleet.read_recipe import ReadOrder
from prony.app.fleet.reading import READING, Readers
from prony.app.fleet.work_pool import Trade, WorkPool
from prony.errors import CapacityError, InputError, RecipeError, StoreError
from prony.model.queue import Submission
from servers.process import commands

from . import greedy_work
from .fleet_fixture import recipe
from .greedy_work import Wish

pytestmark = pytest.mark.anyio
GREEDY: Trade[Wish, str] = Trade(
    "is greedy", greedy_work.__name__, greedy_work.carry_out, on_loss=lambda: StoreError("lost"),
    on_limit=lambda: InputError("too costly"), limits=greedy_work.LIMITS, most_waiting=1,
)  # fmt: skip


def _children() -> list[psutil.Process]:
    return [one for one, command in commands(psutil.Process().children()) if command[-1:] == [GREEDY.module]]


@pytest.fixture
async def pool(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkPool[Wish, str]]:
    root = Path(__file__).parents[greedy_work.__name__.count(".")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]))
    made = WorkPool(GREEDY, 1)
    yield made
    await made.close()
    assert not _children()


@pytest.mark.parametrize("what", ["cpu", "memory"])
async def test_an_order_over_its_limits_is_refused_and_the_next_one_carried_out(
    pool: WorkPool[Wish, str], what: str
) -> None:
    with pytest.raises(InputError, match="too costly"):
        await pool.do(Wish(what))
    assert await pool.do(Wish("word")) == "word"


async def test_an_order_that_only_waits_ends_by_the_clock(pool: WorkPool[Wish, str]) -> None:
    limits = replace(greedy_work.LIMITS, wall_s=2.0)
    impatient = WorkPool(replace(GREEDY, limits=limits), 1)
    with pytest.raises(InputError, match="too costly"):
        await impatient.do(Wish("sleep"))
    await impatient.close()


async def test_whoever_goes_away_frees_the_process(pool: WorkPool[Wish, str]) -> None:
    waiting = asyncio.create_task(pool.do(Wish("sleep")))
    while not _children():
        await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.wait_for(pool.do(Wish("word")), 60) == "word"


async def test_closing_ends_what_works_and_tries_no_second_time(pool: WorkPool[Wish, str]) -> None:
    working = asyncio.create_task(pool.do(Wish("sleep")))
    while not _children():
        await asyncio.sleep(0.05)
    await pool.close()
    assert not _children()
    with pytest.raises(ClosingError):
        await asyncio.wait_for(working, 20)
    assert not _children()


async def test_closing_waits_for_a_process_that_is_being_started(pool: WorkPool[Wish, str]) -> None:
    starting = asyncio.create_task(pool.do(Wish("sleep")))
    await asyncio.sleep(0)
    await pool.close()
    assert not _children()
    with pytest.raises(ClosingError):
        await asyncio.wait_for(starting, 20)
    assert not _children()


@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.02, 0.5])
async def test_closing_waits_for_the_process_of_whoever_went_away(pool: WorkPool[Wish, str], delay_s: float) -> None:
    gone = asyncio.create_task(pool.do(Wish("sleep")))
    await asyncio.sleep(delay_s)
    gone.cancel()
    await pool.close()
    assert not _children()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(gone, 20)
    assert not _children()


async def test_a_closed_pool_takes_no_orders(pool: WorkPool[Wish, str]) -> None:
    await pool.close()
    await pool.warm()
    with pytest.raises(ClosingError):
        await pool.do(Wish("word"))
    assert not _children()


async def test_no_more_wait_than_may(pool: WorkPool[Wish, str]) -> None:
    first, second = (asyncio.create_task(pool.do(Wish("sleep"))) for _ in range(2))
    await asyncio.sleep(0)
    with pytest.raises(CapacityError, match="1 requests wait") as refused:
        await pool.do(Wish("word"))
    assert refused.value.code == "busy"
    for one in (first, second):
        one.cancel()
    await asyncio.gather(first, second, return_exceptions=True)


async def test_a_recipe_is_read_as_in_this_process() -> None:
    readers = Readers(1)
    order = ReadOrder(Submission(text=recipe(3)), "e1")
    there, here = await readers.do(order), await Readers(0).do(order)
    assert there == here
    assert [job.id for job in there.cells] == ["e1-001", "e1-002", "e1-003"]
    with pytest.raises(RecipeError) as refused:
        await readers.do(ReadOrder(Submission(text="name: [")))
    assert refused.value.problems
    assert READING.limits is not None
    await readers.close()
