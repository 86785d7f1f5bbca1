"""The server's own lists, asked as Redis clients ask: by redis-py in both versions of the protocol, and by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from prony.compat.sark.face.lists import Lists
from prony.compat.sark.face.resp import served_lists
from prony.errors import StoreError
from prony.server.listening import listening_at

Body = Callable[[Lists, Any], Awaitable[None]]


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Lists, int]]:
    with listening_at("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        lists = Lists("127.0.0.1", port)
        async with served_lists(lists, listening):
            yield lists, port


def asked(body: Body, protocol: int = 3) -> None:
    """Run a conversation with a client of its own."""

    async def run() -> None:
        async with (
            served() as (lists, port),
            Redis(port=port, protocol=protocol, decode_responses=True, socket_timeout=60) as client,
        ):
            await body(lists, client)

    asyncio.run(asyncio.wait_for(run(), 120))


def sent(*lines: bytes) -> bytes:
    """Return what comes back for bytes that no client would send, until the connection ends."""

    async def run() -> bytes:
        async with served() as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"".join(lines))
            writer.write_eof()
            return await reader.read()

    return asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize("protocol", [2, 3])
def test_all_that_a_dumont_says_is_answered(protocol: int) -> None:
    async def body(lists: Lists, client: Any) -> None:
        assert await client.ping() is True
        assert await client.rpop("jobs:worker-1") is None
        await lists.push("jobs:capability:cpu_onnx", ["a", "b"])
        assert [await client.rpop("jobs:capability:cpu_onnx") for _ in range(3)] == ["a", "b", None]
        assert await client.lpush("results", '{"x": 1}') == 1
        assert await lists.results(10) == (b'{"x": 1}',)

    asked(body, protocol)


@pytest.mark.parametrize("protocol", [2, 3])
def test_lists_are_read_and_changed_as_in_redis(protocol: int) -> None:
    async def body(_: Lists, client: Any) -> None:
        await client.lpush("k", "a", "b", "c", "b")
        await client.rpush("k", "z")
        assert await client.lrange("k", 0, -1) == ["b", "c", "b", "a", "z"]
        assert [await client.lindex("k", place) for place in (-1, 0, 9)] == ["z", "b", None]
        assert await client.lrem("k", -1, "b") == 1
        assert await client.lrange("k", 0, -1) == ["b", "c", "a", "z"]
        assert await client.lrem("k", 0, "nothing") == 0
        assert await client.rpoplpush("k", "other") == "z"
        assert (await client.llen("k"), await client.lrange("other", 0, -1)) == (3, ["z"])
        assert await client.rpop("k", 2) == ["a", "c"]
        assert await client.lrange("k", -1, -1) == ["b"]

    asked(body, protocol)


def test_several_commands_are_one_step() -> None:
    async def body(_: Lists, client: Any) -> None:
        async with client.pipeline(transaction=True) as both:
            both.lpush("results", "r")
            both.lrem("held", 0, "x")
            assert await both.execute() == [1, 0]

    asked(body)


def test_who_waits_gets_what_comes() -> None:
    async def body(lists: Lists, client: Any) -> None:
        assert await client.brpop("results", timeout=0.05) is None
        waiting = asyncio.create_task(client.brpop(["a", "b"], timeout=50))
        await asyncio.sleep(0)
        await lists.push("b", ["job"])
        assert await waiting in (["b", "job"], ("b", "job"))

    asked(body)


def test_a_job_is_lent_in_the_moment_in_which_it_is_taken_and_who_takes_it_is_known() -> None:
    async def body(lists: Lists, client: Any) -> None:
        lent: list[tuple[str, str]] = []

        async def lend(job_id: str, worker_id: str) -> bool:
            lent.append((job_id, worker_id))
            return job_id != "gone"

        lists.lend = lend
        await lists.push("jobs:capability:cpu_onnx", ["gone", "here"])
        assert await client.rpop("jobs:worker-1") is None
        assert await client.rpop("jobs:capability:cpu_onnx") == "here"
        assert lent == [("gone", "worker-1"), ("here", "worker-1")]
        await lists.push("jobs:capability:cpu_onnx", ["next"])
        assert await client.rpoplpush("jobs:capability:cpu_onnx", "jobs:capability:cpu_onnx:held:worker-2") == "next"
        assert lent[-1] == ("next", "worker-2")

    asked(body)


def test_a_job_stays_where_it_is_while_nobody_can_note_who_has_it() -> None:
    async def body(lists: Lists, client: Any) -> None:
        async def lend(job_id: str, worker_id: str) -> bool:
            raise StoreError("the database is away")

        lists.lend = lend
        await lists.push("jobs:worker-1", ["job"])
        assert await client.rpop("jobs:worker-1") is None
        assert await lists.contents(["jobs:worker-1"]) == {"jobs:worker-1": ("job",)}

    asked(body)


def test_a_worker_that_is_drained_gets_nothing() -> None:
    async def body(lists: Lists, client: Any) -> None:
        lists.allows = lambda worker_id: worker_id != "worker-1"
        await lists.push("jobs:worker-1", ["job"])
        assert await client.rpop("jobs:worker-1") is None
        assert await client.llen("jobs:worker-1") == 1

    asked(body)


def test_a_report_is_recorded_before_its_worker_is_answered_and_kept_where_that_fails() -> None:
    async def body(lists: Lists, client: Any) -> None:
        recorded: list[bytes] = []

        async def record(raw: bytes) -> None:
            if raw == b"bad":
                raise StoreError("the disk is full")
            recorded.append(raw)

        lists.record = record
        await client.lpush("results", "good")
        assert recorded == [b"good"]
        await client.lpush("results", "bad")
        assert await lists.results(10) == (b"bad",)

    asked(body)


def test_what_is_not_understood_is_told_and_the_connection_goes_on() -> None:
    async def body(_: Lists, client: Any) -> None:
        for words in (("FLUSHALL",), ("RPOP",), ("LREM", "k", "x", "y"), ("SELECT", "3"), ("EXEC",), ("LPUSH", "k")):
            with pytest.raises(ResponseError):
                await client.execute_command(*words)
        assert await client.ping() is True
        assert "role" in await client.info()

    asked(body)


def test_a_version_of_the_protocol_that_there_is_not_is_refused() -> None:
    assert sent(b"HELLO 4\r\n").startswith(b"-ERR")
    assert sent(b"HELLO\r\n").startswith(b"*14\r\n")


def test_words_in_a_line_are_a_command_too() -> None:
    assert sent(b"PING\r\n", b"\r\n", b"QUIT\r\n") == b"+PONG\r\n+OK\r\n"


@pytest.mark.parametrize(
    "first",
    [b"POST / HTTP/1.1\r\n", b"Host: localhost\r\n", b"*1\r\n+PING\r\n", b"*-1\r\n", b"*x\r\n", b"*1\r\n$99999999\r\n"],
)
def test_what_is_no_command_ends_the_connection_before_anything_below_it_is_done(first: bytes) -> None:
    assert sent(first, b"LPUSH results forged\r\n") == b""


def test_lists_have_a_limit() -> None:
    async def body(_: Lists, client: Any) -> None:
        piece = "x" * 1_000_000
        await client.lpush("k", *[piece] * 67)
        with pytest.raises(ResponseError, match="full"):
            await client.lpush("k", piece)

    asked(body)
