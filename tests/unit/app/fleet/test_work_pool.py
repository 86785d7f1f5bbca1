"""Processes that work for a server: what one order takes has limits, and whoever goes away frees them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

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


async def _wait_until_none_is_left() -> None:
    """A killed process is listed until it was scheduled once more."""
    async with asyncio.timeout(60):
        while _children():
            await asyncio.sleep(0.05)


@pytest.fixture
async def pool(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkPool[Wish, str]]:
    root = Path(__file__).parents[greedy_work.__name__.count(".")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]))
    made = WorkPool(GREEDY, 1)
    yield made
    await made.close()
    await _wait_until_none_is_left()


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
