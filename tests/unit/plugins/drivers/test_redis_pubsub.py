"""Messages that are published to a real Redis: each is timed until its subscriber has it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from driver_loads import COUNT, USERS, causes, loaded

from prony.load.endpoint import parse_endpoint
from prony.load.generator import LoadPlan, generate
from prony.load.schedule import plan
from prony.model.load import Load
from prony.plugins.drivers.redis.driver import RedisDriver, RedisOptions
from prony.plugins.drivers.redis.resp import ERROR_WORDS, encode_command
from prony.plugins.drivers.redis.session import RedisSession
from prony.ports.driver import Endpoint, Wants
from servers.binaries import AbsentError
from servers.certificates import certificate
from servers.needs import lack
from servers.redis import redis_server

DELAY_S = 0.03


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(redis_server())
        except AbsentError as exc:
            lack("redis", str(exc))
        yield parse_endpoint(url)


def asked(endpoint: Endpoint, *words: bytes) -> bytes:
    with RedisSession(endpoint) as session:
        return session.ask(encode_command(*words))


def calls(endpoint: Endpoint, name: str) -> int:
    """Return how often the server has obeyed a command."""
    found = re.search(rf"cmdstat_{name}:calls=(\d+)".encode(), asked(endpoint, b"INFO", b"commandstats"))
    return int(found.group(1)) if found else 0


@pytest.mark.parametrize("options", [{}, {"pipeline": 16}, {"value_size": 200_000}, {"value_size": 0}])
def test_every_message_reaches_its_subscriber(endpoint: Endpoint, tmp_path: Path, options: dict[str, int]) -> None:
    driver = RedisDriver()
    prepared, outcome = loaded(driver, endpoint, {"operation": "pubsub"} | options, tmp_path)
    driver.finish()
    assert causes(outcome) == {"OK": COUNT}
    assert calls(endpoint, "publish") == COUNT * options.get("pipeline", 1)
    assert calls(endpoint, "subscribe") == USERS
    assert calls(endpoint, "set") == 0
    assert asked(endpoint, b"PUBSUB", b"CHANNELS") == b"*0\r\n"  # nothing is left at the server
    assert {one.operation for one in prepared.requests} == {"pubsub"}
    assert "one subscriber on its own connection" in prepared.notes["messages"]


def test_what_is_timed_ends_with_the_subscriber_and_not_with_the_publisher(endpoint: Endpoint, tmp_path: Path) -> None:
    with late_messages(endpoint) as proxy:
        driver = RedisDriver()
        _, outcome = loaded(driver, proxy, {"operation": "pubsub"}, tmp_path, count=40)
        _, taken = loaded(driver, proxy, {"operation": "publish"}, tmp_path / "other", count=40)
    assert causes(outcome) == causes(taken) == {"OK": 40}
    latencies_s = (outcome.records["end_ns"] - outcome.records["sent_ns"]) / 1e9
    assert latencies_s.min() >= DELAY_S
    # The server's own answer to a message is not held up: the quickest of them is quicker than any delivery.
    assert ((taken.records["end_ns"] - taken.records["sent_ns"]) / 1e9).min() < DELAY_S


def test_messages_that_nobody_listens_to_are_published_too(endpoint: Endpoint, tmp_path: Path) -> None:
    prepared, outcome = loaded(RedisDriver(), endpoint, {"operation": "publish", "pipeline": 4}, tmp_path)
    assert causes(outcome) == {"OK": COUNT}
    assert (calls(endpoint, "publish"), calls(endpoint, "subscribe")) == (4 * COUNT, 0)
    assert {one.operation for one in prepared.requests} == {"publish"}


def test_a_password_and_another_database_are_spoken_to(endpoint: Endpoint, tmp_path: Path) -> None:
    asked(endpoint, b"CONFIG", b"SET", b"requirepass", b"quite secret")
    closed = replace(endpoint, password="quite secret", database="3")
    _, outcome = loaded(RedisDriver(), closed, {"operation": "pubsub"}, tmp_path)
    assert causes(outcome) == {"OK": COUNT}


def test_who_may_not_publish_is_told_by_the_servers_own_word(endpoint: Endpoint, tmp_path: Path) -> None:
    asked(endpoint, b"ACL", b"SETUSER", b"reader", b"on", b">secret", b"+@all", b"-publish", b"allchannels", b"allkeys")
    reader = replace(endpoint, user="reader", password="secret")
    _, outcome = loaded(RedisDriver(), reader, {"operation": "pubsub"}, tmp_path, count=10)
    assert causes(outcome) == {"STATUS": 10}
    assert {ERROR_WORDS[number] for number in outcome.records["status"].tolist()} == {"NOPERM"}


def test_subscribers_that_the_server_throws_out_come_back_and_every_message_has_a_row(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    options = RedisOptions(operation="pubsub")
    load = Load.model_validate({"closed": {"concurrency": 4, "think": "5ms"}, "duration": "3s"})
    prepared = RedisDriver().prepare(Wants(endpoint, options, seed=3, scratch=tmp_path))
    ground = LoadPlan(prepared, endpoint, plan(load, base=tmp_path), load, tmp_path / "load", processes=1)
    thrown: list[bytes] = []

    def throw_out() -> None:
        deadline = time.monotonic() + 60
        while calls(endpoint, "publish") < 50 and time.monotonic() < deadline:
            time.sleep(0.05)
        thrown.append(asked(endpoint, b"CLIENT", b"KILL", b"TYPE", b"pubsub"))

    helper = threading.Thread(target=throw_out)
    helper.start()
    outcome = generate(ground)
    helper.join()
    assert thrown == [b":4\r\n"]
    ended = causes(outcome)
    assert set(ended) <= {"OK", "RESET"}
    assert ended["OK"] > 50
    assert sum(one.connections_opened for one in outcome.clients) == 8
    assert len(outcome) == len(set(outcome.records["index"].tolist()))


def test_messages_go_over_tls_too(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(redis_server(tls=certificate(tmp_path)))
        except AbsentError as exc:
            lack("redis-tls", str(exc))
        _, outcome = loaded(RedisDriver(), parse_endpoint(url), {"operation": "pubsub"}, tmp_path)
        assert causes(outcome) == {"OK": COUNT}


def test_the_third_version_of_the_protocol_is_refused_for_subscribers() -> None:
    with pytest.raises(ValueError, match="version 2 of the protocol"):
        RedisOptions(operation="pubsub", protocol=3)


@contextlib.contextmanager
def late_messages(server: Endpoint) -> Iterator[Endpoint]:
    """Give a way to the server on which what comes to a subscriber is late, and nothing else."""
    loop = asyncio.new_event_loop()
    ready, over = threading.Event(), asyncio.Event()
    port: list[int] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(server.host, server.port)
        subscribes = [False]

        async def forth() -> None:
            while data := await reader.read(2**16):
                subscribes[0] = subscribes[0] or b"SUBSCRIBE" in data
                back.write(data)
            back.close()

        async def home() -> None:
            while data := await there.read(2**16):
                if subscribes[0]:
                    await asyncio.sleep(DELAY_S)
                writer.write(data)
            writer.close()

        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(forth(), home())

    async def serve() -> None:
        listening = await asyncio.start_server(pass_on, "127.0.0.1", 0)
        port.append(listening.sockets[0].getsockname()[1])
        ready.set()
        await over.wait()
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield replace(server, port=port[0])
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(60)
        loop.close()
