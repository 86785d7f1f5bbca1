"""Send server-sent events to clients, with a heartbeat when there is nothing to send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from prony.app.fleet.closing import ClosingError
from prony.server.long_poll import Waits
from prony.server.problems import ClientGoneError

BEAT_S = 10.0
_BEAT = b": beat\n\n"


class SseEvent(Protocol):
    """One event; `data` is JSON text, an empty `id` is none."""

    @property
    def event(self) -> str: ...
    @property
    def data(self) -> str: ...
    @property
    def id(self) -> str: ...


class EventStream(Response):
    """Ends with its source, with the client or with the server, whichever is first."""

    media_type = "text/event-stream"

    def __init__(
        self, first: SseEvent, source: AsyncIterator[SseEvent], waits: Waits, *, beat_s: float = BEAT_S
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._first = first
        self._source = source
        self._waits = waits
        self._beat_s = beat_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            with suppress(ClientGoneError, ClosingError):
                await self._waits.attend(receive, self._pump(send))
        finally:
            if isinstance(self._source, AsyncGenerator):
                await self._source.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        await _tell(send, encode_event(self._first))
        coming = asyncio.ensure_future(_next(self._source))
        try:
            while True:
                await asyncio.wait({coming}, timeout=self._beat_s)
                if not coming.done():
                    await _tell(send, _BEAT)
                    continue
                notice = coming.result()
                if notice is None:
                    return
                await _tell(send, encode_event(notice))
                coming = asyncio.ensure_future(_next(self._source))
        finally:
            coming.cancel()
            await asyncio.wait({coming})  # a source that is still busy cannot be closed


def encode_event(notice: SseEvent) -> bytes:
    lines = "".join(f"data: {line}\n" for line in notice.data.split("\n"))
    place = f"id: {notice.id}\n" if notice.id else ""
    return f"{place}event: {notice.event}\n{lines}\n".encode()


async def _next(source: AsyncIterator[SseEvent]) -> SseEvent | None:
    return await anext(source, None)


async def _tell(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
