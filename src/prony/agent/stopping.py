"""Stop requests: the first makes an agent drain, the second makes it stop at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Stopping:
    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurried = asyncio.Event()

    def ask(self) -> None:
        (self.hurried if self.is_asked else self.asked).set()

    @property
    def is_asked(self) -> bool:
        return self.asked.is_set()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the end is asked for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.asked.wait()

    async def unless_asked(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what the work returns, or None where the end was asked for first; the work is then given up."""
        return await _unless(self.asked, work)

    async def unless_hurried(self, work: Coroutine[Any, Any, T]) -> T | None:
        return await _unless(self.hurried, work)


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    task, asked = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await cancel_tasks(task, asked)


async def cancel_tasks(*tasks: asyncio.Task[Any]) -> None:
    """End tasks and wait until they have."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
