"""Answer connections that speak Redis's protocol, from the lists of this process.

As much of Redis as workers use: Dumont pings, pops and pushes, Prony's own agent moves jobs between lists.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog

from prony import __version__
from prony.compat.sark.face.lists import Lists
from prony.compat.sark.nouns import RESULTS_QUEUE
from prony.errors import PronyError
from prony.server.connections import Connections

_LONGEST_ARGUMENT = 2**20
_MOST_ARGUMENTS = 10_000
# Of one command, which is more than the lists hold; and of all commands that a connection has begun as one step.
_MOST_BYTES = 128 * 2**20
_MOST_STEP_BYTES = 2**20
# How long the rest of a command may take to come.
_COMMAND_S = 60.0
_HELD = ":held:"
_HTTP = (b"GET", b"POST", b"PUT", b"OPTIONS", b"HOST:")
_log = structlog.get_logger("prony.server")


class Status(str):
    """An answer that is a word and no value."""

    __slots__ = ()


class CommandError(Exception):
    """A command that was not understood; the connection goes on."""


class Session:
    """One connection: which protocol it speaks, which worker it is of, and what it has begun as one step."""

    def __init__(self, lists: Lists, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lists = lists
        self._reader = reader
        self._writer = writer
        self._protocol = 2
        self._worker_id = ""
        self._step: list[list[bytes]] | None = None
        self._step_size = 0

    def evict(self) -> None:
        """Make room for another connection."""
        self._writer.transport.abort()

    async def serve(self) -> None:
        """Answer until the other side goes, or speaks nonsense."""
        try:
            while (words := await self._words()) is not None:
                if words:
                    self._writer.write(self._encode(await self._answer(words)))
                    await self._writer.drain()
                if words and words[0].upper() == b"QUIT":
                    return
        except (
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ValueError,
            TimeoutError,
        ) as exc:
            _log.debug("worker's connection ended", reason=str(exc)[:200])
        finally:
            self._writer.close()

    async def _words(self) -> list[bytes] | None:
        """Read one command: an array of blobs, or words in a line; None at the end."""
        line = await self._reader.readline()
        if not line:
            return None
        if not line.startswith(b"*"):
            words = line.split()
            if words and words[0].upper() in _HTTP:
                raise ValueError("HTTP is not spoken here")  # a web page may send such lines, with commands below them
            return words
        count = int(line[1:])
        if not 0 <= count <= _MOST_ARGUMENTS:
            raise ValueError(f"{count} arguments")
        words, size = list[bytes](), 0
        async with asyncio.timeout(_COMMAND_S):
            for _ in range(count):
                words.append(await self._blob())
                size += len(words[-1])
                if size > _MOST_BYTES:
                    raise ValueError(f"a command of more than {_MOST_BYTES} bytes")
        return words

    async def _blob(self) -> bytes:
        head = await self._reader.readline()
        size = int(head[1:]) if head.startswith(b"$") else -1
        if not 0 <= size <= _LONGEST_ARGUMENT:
            raise ValueError(f"no argument: {head[:40]!r}")
        return (await self._reader.readexactly(size + 2))[:-2]

    async def _answer(self, words: list[bytes]) -> Any:
        name = words[0].upper().decode("latin-1")
        if self._step is not None and name not in ("EXEC", "DISCARD", "MULTI"):
            self._step.append(words)
            self._step_size += sum(len(word) + 64 for word in words)
            if self._step_size > _MOST_STEP_BYTES:
                raise ValueError(f"a step of more than {_MOST_STEP_BYTES} bytes")
            return Status("QUEUED")
        try:
            return await self._do(name, words[1:])
        except (CommandError, PronyError) as exc:
            return exc
        except (IndexError, ValueError):
            return CommandError(f"wrong arguments for '{name.lower()}'")

    async def _do(self, name: str, arguments: list[bytes]) -> Any:
        command = _COMMANDS.get(name)
        if command is None:
            raise CommandError(f"unknown command '{name[:50]}'")
        return await command(self, arguments)

    # Of the connection

    async def hello(self, arguments: list[bytes]) -> Any:
        if arguments:
            wanted = int(arguments[0])
            if wanted not in (2, 3):
                return CommandError("unsupported protocol version")
            self._protocol = wanted
        return {
            "server": "redis", "version": "7.0.0", "proto": self._protocol, "id": 1, "mode": "standalone",
            "role": "master", "modules": [],
        }  # fmt: skip

    async def ping(self, arguments: list[bytes]) -> Any:
        return arguments[0] if arguments else Status("PONG")

    async def fine(self, _: list[bytes]) -> Any:
        return Status("OK")

    async def select(self, arguments: list[bytes]) -> Any:
        return Status("OK") if int(arguments[0]) == 0 else CommandError("there is only database 0")

    async def info(self, _: list[bytes]) -> Any:
        told = ("# Server", "redis_version:7.0.0", f"prony_version:{__version__}", "# Replication", "role:master", "")
        return "\r\n".join(told).encode()

    async def multi(self, _: list[bytes]) -> Any:
        self._step, self._step_size = [], 0
        return Status("OK")

    async def discard(self, _: list[bytes]) -> Any:
        self._step = None
        return Status("OK")

    async def execute(self, _: list[bytes]) -> Any:
        if self._step is None:
            raise CommandError("EXEC without MULTI")
        step, self._step = self._step, None
        return [await self._answer(words) for words in step]

    # Of the lists

    async def rpop(self, arguments: list[bytes]) -> Any:
        queue = _name(arguments[0])
        self._belong(queue)
        if len(arguments) == 1:
            return await self._lists.pop(queue, self._worker_id)
        found = [await self._lists.pop(queue, self._worker_id) for _ in range(int(arguments[1]))]
        return [one for one in found if one is not None] or None

    async def rpoplpush(self, arguments: list[bytes]) -> Any:
        source, target = map(_name, arguments[:2])
        self._belong(target)
        found = await self._lists.pop(source, self._worker_id)
        if found is not None:
            self._lists.add(target, found, left=True)
        return found

    async def brpop(self, arguments: list[bytes]) -> Any:
        names, wait_s = list(map(_name, arguments[:-1])), float(arguments[-1])
        clock = asyncio.get_running_loop().time
        until = clock() + wait_s if wait_s else math.inf
        while True:
            for queue in names:
                self._belong(queue)
                found = await self._lists.pop(queue, self._worker_id)
                if found is not None:
                    return [queue.encode(), found]
            if clock() >= until or self._writer.is_closing():
                return None
            await self._lists.grown(min(1.0, until - clock()))

    async def lpush(self, arguments: list[bytes]) -> Any:
        queue, values = _name(arguments[0]), arguments[1:]
        if queue == RESULTS_QUEUE:
            for value in values:
                await self._lists.deliver(value)
            return max(len(values), self._lists.size(queue))
        return [self._lists.add(queue, value, left=True) for value in values][-1]

    async def rpush(self, arguments: list[bytes]) -> Any:
        queue = _name(arguments[0])
        return [self._lists.add(queue, value, left=False) for value in arguments[1:]][-1]

    async def lrem(self, arguments: list[bytes]) -> Any:
        return self._lists.take_out(_name(arguments[0]), arguments[2], int(arguments[1]))

    async def llen(self, arguments: list[bytes]) -> Any:
        return self._lists.size(_name(arguments[0]))

    async def lrange(self, arguments: list[bytes]) -> Any:
        return self._lists.range(_name(arguments[0]), int(arguments[1]), int(arguments[2]))

    async def lindex(self, arguments: list[bytes]) -> Any:
        found, place = self._lists.range(_name(arguments[0]), 0, -1), int(arguments[1])
        return found[place] if -len(found) <= place < len(found) else None

    def _belong(self, queue: str) -> None:
        """Learn whose connection this is: a worker looks into its own list first, and holds jobs under its name."""
        parts = queue.split(":")
        if _HELD in queue:
            self._worker_id = parts[-1]
        elif len(parts) == 2 and parts[0] == "jobs":
            self._worker_id = parts[1]

    # Out

    def _encode(self, value: Any) -> bytes:
        if value is None:
            return b"_\r\n" if self._protocol == 3 else b"$-1\r\n"
        if isinstance(value, Exception | Status):
            line = f"+{value}" if isinstance(value, Status) else f"-ERR {' '.join(str(value).split())}"
            return f"{line}\r\n".encode()
        if isinstance(value, int):
            return b":%d\r\n" % value
        if isinstance(value, dict):
            return self._map(value)
        if isinstance(value, list):
            return b"*%d\r\n" % len(value) + b"".join(map(self._encode, value))
        raw = value.encode() if isinstance(value, str) else value
        return b"$%d\r\n%b\r\n" % (len(raw), raw)

    def _map(self, value: dict[str, Any]) -> bytes:
        head = b"%%%d\r\n" % len(value) if self._protocol == 3 else b"*%d\r\n" % (2 * len(value))
        return head + b"".join(self._encode(key) + self._encode(one) for key, one in value.items())


@asynccontextmanager
async def served_lists(
    lists: Lists, listening: socket.socket, connections: Connections | None = None
) -> AsyncIterator[None]:
    """Let workers in until the block ends."""
    open_: set[asyncio.Task[Any]] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            open_.add(task)
            task.add_done_callback(open_.discard)
        await _serve_counted(lists, reader, writer, connections)

    server = await asyncio.start_server(take, sock=listening)
    try:
        yield
    finally:
        server.close()
        for task in tuple(open_):
            task.cancel()
        await asyncio.gather(*open_, return_exceptions=True)


async def _serve_counted(
    lists: Lists, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connections: Connections | None
) -> None:
    session = Session(lists, reader, writer)
    address = str((writer.get_extra_info("peername") or ("",))[0])
    if connections is not None and not connections.add(session, address):
        writer.transport.abort()
        return
    try:
        if connections is not None:  # workers keep theirs open, whatever they wait for
            connections.note_idle(session, address)
        await session.serve()
    finally:
        if connections is not None:
            connections.remove(session, address)


def _name(raw: bytes) -> str:
    return raw.decode(errors="replace")


_COMMANDS: dict[str, Callable[[Session, list[bytes]], Awaitable[Any]]] = {
    "HELLO": Session.hello,
    "PING": Session.ping,
    "CLIENT": Session.fine,
    "QUIT": Session.fine,
    "SELECT": Session.select,
    "INFO": Session.info,
    "MULTI": Session.multi,
    "DISCARD": Session.discard,
    "EXEC": Session.execute,
    "RPOP": Session.rpop,
    "RPOPLPUSH": Session.rpoplpush,
    "BRPOP": Session.brpop,
    "LPUSH": Session.lpush,
    "RPUSH": Session.rpush,
    "LREM": Session.lrem,
    "LLEN": Session.llen,
    "LRANGE": Session.lrange,
    "LINDEX": Session.lindex,
}
