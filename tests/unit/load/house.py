"""Real servers with odd manners in a thread of their own, and what a load on them needs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.load.generator import LoadPlan, generate
from prony.load.http import request_bytes
from prony.load.outcome import LoadOutcome
from prony.load.schedule import plan
from prony.model.load import Load
from prony.ports.driver import Endpoint, Keeps, Prepared, Request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
WIRE = "prony.load.http:HttpWire"


@dataclass
class Visit:
    """One request as the server sees it: which one it is of all, on which connection, and where to write."""

    number: int
    connection: int
    request: bytes
    writer: asyncio.StreamWriter

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def reset(self) -> None:
        """Break the connection off as a crash would."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.close()


Manner = Callable[[Visit], Awaitable[None]]


@dataclass
class Server:
    endpoint: Endpoint
    requests: list[bytes] = field(default_factory=list)
    visits: list[tuple[int, bytes]] = field(default_factory=list)
    connections: int = 0
    resumed: int = 0


async def polite(visit: Visit) -> None:
    visit.write(OK)


@contextlib.contextmanager
def serving(
    manner: Manner = polite, *, path: Path | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Serve until the block ends; each request is answered by `manner`."""
    server = Server(Endpoint(path=str(path)) if path else Endpoint())
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    over: list[asyncio.Event] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = server.connections
        server.connections += 1
        wrapped = writer.get_extra_info("ssl_object")
        server.resumed += bool(wrapped and wrapped.session_reused)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.is_closing():
                request = await reader.readuntil(b"\r\n\r\n")
                request += await reader.readexactly(_length(request))
                visit = Visit(len(server.visits), connection, request, writer)
                server.visits.append((connection, request))
                await manner(visit)
                await writer.drain()
        writer.close()

    async def run() -> None:
        over.append(asyncio.Event())
        if path is not None:
            listening: asyncio.Server = await asyncio.start_unix_server(connected, path, backlog=1024)
        else:
            listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls, backlog=1024)
            host, port = listening.sockets[0].getsockname()[:2]
            server.endpoint = Endpoint(host="localhost" if tls else host, port=port, tls=tls is not None, verify=False)
        ready.set()
        await over[0].wait()
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def main() -> None:
        asyncio.set_event_loop(loop)
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(run())
        loop.run_until_complete(loop.shutdown_asyncgens())

    thread = threading.Thread(target=main)
    thread.start()
    try:
        assert ready.wait(120)
        yield server
    finally:
        loop.call_soon_threadsafe(over[0].set)
        thread.join(120)
        loop.close()


def _length(request: bytes) -> int:
    for line in request.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def prepared(
    endpoint: Endpoint, count: int = 1, *, keeps: Keeps = Keeps.NOTHING, options: dict[str, Any] | None = None
) -> Prepared:
    """Return GET requests of /0, /1, ..."""
    requests = [Request(request_bytes("GET", f"/{number}", endpoint)) for number in range(count)]
    return Prepared(requests, WIRE, options or {}, keeps)


def load_on(
    server: Server, scratch: Path, asked: Prepared | None = None, *, processes: int | None = None, **load: Any
) -> LoadOutcome:
    """Send a load, written as in a recipe, and return what became of it."""
    return generate(ground_of(server, scratch, asked, processes=processes, **load))


def ground_of(
    server: Server, scratch: Path, asked: Prepared | None = None, *, processes: int | None = None, **load: Any
) -> LoadPlan:
    noun = Load.model_validate(load)
    chosen = asked or prepared(server.endpoint)
    return LoadPlan(chosen, server.endpoint, plan(noun, base=scratch), noun, scratch, processes)


def column(outcome: LoadOutcome, name: str) -> list[int]:
    values: list[int] = outcome.records[name].tolist()
    return values


def numbers_of(visits: Sequence[tuple[int, bytes]]) -> list[int]:
    """Return which of the prepared requests came, in order."""
    return [int(request.split()[1][1:]) for _, request in visits]


def endless(host: str, port: int, scratch: str) -> None:
    """Load a server until somebody ends this process; the entry of a process of its own."""
    load_on(Server(Endpoint(host=host, port=port)), Path(scratch), closed={"concurrency": 2}, duration="10m")
