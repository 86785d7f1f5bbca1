"""HTTP proxy that loses, delays and repeats messages and cuts connections, for fault tests.

It stands between agents and a server, and understands just enough of HTTP/1.1 to break it in meaningful places.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_BROKEN = (OSError, asyncio.IncompleteReadError, ValueError, EOFError, asyncio.CancelledError)


@dataclass(frozen=True)
class Odds:
    """How often each thing happens to a request; the rest passes as it is."""

    cut_before: float = 0.0  # the request never arrives
    cut_after: float = 0.0  # it arrives, and its reply is lost
    twice: float = 0.0  # it arrives twice
    delay: float = 0.0  # its reply is late
    longest_delay_s: float = 1.0


class Proxy:
    """Listens on a port of its own in a thread of its own."""

    def __init__(self, upstream_port: int, odds: Odds, seed: int) -> None:
        self.upstream_port = upstream_port
        self.odds = odds
        self.counts: dict[str, int] = {}
        self.port = 0
        self._random = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        self._ready.wait(60)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut_all(self) -> None:
        """Break every connection there is."""

        async def cut() -> None:
            for writer in list(self._writers):
                writer.transport.abort()

        self._do(cut())

    def close(self) -> None:
        self.cut_all()
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(60)

    def _end(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while request := await _message(reader):
                if not await self._answer(request, writer):
                    break
        except _BROKEN:
            pass
        finally:
            self._writers.discard(writer)
            with suppress(*_BROKEN):
                writer.transport.abort()

    async def _answer(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """Pass one request on, or do to it what chance says; return whether the connection is still good."""
        fate = self._fate()
        self.counts[fate] = self.counts.get(fate, 0) + 1
        if fate == "cut_before":
            return False
        reply = await self._ask(request)
        if fate == "twice":
            reply = await self._ask(request)
        if fate == "delay":
            await asyncio.sleep(self._random.uniform(0, self.odds.longest_delay_s))
        if fate == "cut_after" or reply is None:
            return False
        writer.write(reply)
        await writer.drain()
        return True

    def _fate(self) -> str:
        dice = self._random.random()
        for name in ("cut_before", "cut_after", "twice", "delay"):
            dice -= getattr(self.odds, name)
            if dice < 0:
                return name
        return "passed"

    async def _ask(self, request: bytes) -> bytes | None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream_port)
        except OSError:
            return None
        try:
            writer.write(request)
            await writer.drain()
            return await _message(reader, is_reply=True) or None
        except _BROKEN:
            return None
        finally:
            writer.transport.abort()


async def _message(reader: asyncio.StreamReader, *, is_reply: bool = False) -> bytes:
    """Read one whole request or reply; nothing where the connection ended before one began."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as exc:
        if exc.partial:
            raise
        return b""
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    status = head.split(b" ", 2)[1]
    if is_reply and status in (b"204", b"304"):
        return head
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        return head + await _chunks(reader)
    length = int(fields.get(b"content-length", b"0"))
    return head + await reader.readexactly(length)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = await reader.readline()
        body += size + await reader.readexactly(int(size, 16) + 2)
        if int(size, 16) == 0:
            return body
