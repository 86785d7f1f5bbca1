"""Hold long polls and event streams open until an answer, a disconnect or a shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.types import Receive

from prony.app.fleet.closing import ClosingError
from prony.server.problems import ClientGoneError

T = TypeVar("T")


class Waits:
    """The long polls and event streams that are open."""

    def __init__(self) -> None:
        self._leaving: set[Callable[[Exception], None]] = set()
        self._closing = False

    def __len__(self) -> int:
        return len(self._leaving)

    def close(self) -> None:
        """End all of them, and those that come."""
        self._closing = True
        for leave in tuple(self._leaving):
            leave(ClosingError())

    async def attend(
        self, receive: Receive, work: Awaitable[T], *, after: asyncio.Event | None = None, till_closing: bool = True
    ) -> T:
        """Return what the work returns; it is cancelled where nobody waits for it any longer.

        The request's body must have been read, or will have been when `after` is set: what is received then is that
        the client has gone. Without `till_closing` the work goes on when the server closes: it ends by itself.
        """
        if self._closing and till_closing:
            _drop(work)
            raise ClosingError()
        task, why = asyncio.current_task(), list[Exception]()

        def leave(reason: Exception) -> None:
            if not why and task is not None:
                why.append(reason)
                task.cancel()

        watch = asyncio.create_task(_watch(receive, leave, after))
        if till_closing:
            self._leaving.add(leave)
        try:
            return await work
        except asyncio.CancelledError:
            if not why or task is None:
                raise
            task.uncancel()
            raise why[0] from None
        finally:
            self._leaving.discard(leave)
            watch.cancel()


async def _watch(receive: Receive, leave: Callable[[Exception], None], after: asyncio.Event | None) -> None:
    if after is not None:
        await after.wait()
    while (await receive())["type"] != "http.disconnect":
        pass
    leave(ClientGoneError())


def _drop(work: Awaitable[T]) -> None:
    if asyncio.iscoroutine(work):
        work.close()
