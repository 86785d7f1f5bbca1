"""The redis driver against a real Redis."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from driver_lines import SocketLine

from prony.errors import InputError, SutError, TransportError
from prony.plugins.drivers.redis.driver import RedisDriver, RedisOptions
from prony.plugins.drivers.redis.resp import encode_command
from prony.plugins.drivers.redis.session import RedisSession
from prony.ports.driver import Cause, Endpoint, Prepared, Wants
from servers.binaries import AbsentError
from servers.needs import lack
from servers.redis import redis_server

SECRET = "quite secret"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    path = tmp_path_factory.mktemp("redis") / "s"
    try:
        with redis_server("--unixsocket", str(path)) as url:
            open_to_all = Endpoint(host="127.0.0.1", port=urlsplit(url).port or 0, path=str(path))
            with RedisSession(open_to_all) as session:
                session.ask(encode_command(b"CONFIG", b"SET", b"requirepass", SECRET.encode()))
            yield replace(open_to_all, password=SECRET)
    except AbsentError as exc:
        lack("redis", str(exc))


@pytest.fixture
def endpoint(server: Endpoint) -> Endpoint:
    return replace(server, path="")


def prepared(driver: RedisDriver, endpoint: Endpoint, *, seed: int = 7, **options: object) -> Prepared:
    chosen = {"key_count": 50, "distinct": 40, "value_size": 20, **options}
    return driver.prepare(Wants(endpoint=endpoint, options=RedisOptions.model_validate(chosen), seed=seed))


def keys(endpoint: Endpoint) -> int:
    with RedisSession(endpoint) as session:
        return int(session.ask(encode_command(b"DBSIZE")).strip(b":\r\n"))


@pytest.mark.parametrize("pipeline", [1, 16])
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("operation", ["set", "get", "mixed"])
def test_every_request_is_answered_and_nothing_is_left(
    endpoint: Endpoint, operation: str, pipeline: int, protocol: int
) -> None:
    driver = RedisDriver()
    made = prepared(driver, endpoint, operation=operation, pipeline=pipeline, protocol=protocol)
    line = SocketLine(endpoint, made)
    assert {line.ask(request.content) for request in made.requests} == {(0, Cause.OK)}
    assert keys(endpoint) == 50 if operation != "set" else keys(endpoint) <= 50
    assert {request.items for request in made.requests} == {pipeline}
    line.close()
    driver.finish()
    assert keys(endpoint) == 0
    driver.finish()


def test_a_unix_socket_and_another_database_are_spoken_to(server: Endpoint) -> None:
    elsewhere = replace(server, database="3")
    driver = RedisDriver()
    made = prepared(driver, elsewhere, operation="get")
    line = SocketLine(elsewhere, made)
    assert line.ask(made.requests[0].content) == (0, Cause.OK)
    assert (keys(elsewhere), keys(server)) == (50, 0)
    line.close()
    driver.finish()
    assert keys(elsewhere) == 0


def test_a_key_that_has_gone_is_wrong_content_and_a_full_server_says_no(endpoint: Endpoint) -> None:
    driver = RedisDriver()
    made = prepared(driver, endpoint, operation="mixed", key_count=1)
    line = SocketLine(endpoint, made)
    get = next(request for request in made.requests if request.operation == "get")
    put = next(request for request in made.requests if request.operation == "set")
    with RedisSession(endpoint) as session:
        session.ask(encode_command(b"FLUSHALL"))
        assert line.ask(get.content) == (0, Cause.CONTENT)
        session.ask(encode_command(b"CONFIG", b"SET", b"maxmemory", b"1"))
        assert line.ask(put.content) == (6, Cause.STATUS)
        session.ask(encode_command(b"CONFIG", b"SET", b"maxmemory", b"0"))
    assert line.ask(put.content) == (0, Cause.OK)
    line.close()
    driver.finish()


def test_a_server_that_is_full_before_the_load_is_told_and_nothing_is_left(endpoint: Endpoint) -> None:
    with RedisSession(endpoint) as session:
        used = int(re.findall(rb"used_memory:(\d+)", session.ask(encode_command(b"INFO", b"memory")))[0])
        session.ask(encode_command(b"CONFIG", b"SET", b"maxmemory", str(used + 2_000_000).encode()))
        with pytest.raises(SutError, match="OOM"):
            prepared(RedisDriver(), endpoint, operation="get", value_size=100_000, key_count=1000)
        session.ask(encode_command(b"CONFIG", b"SET", b"maxmemory", b"0"))
    assert keys(endpoint) == 0


def test_requests_are_the_same_for_the_same_seed_and_sizes_are_kept(endpoint: Endpoint) -> None:
    driver = RedisDriver()
    one, same, other = (prepared(driver, endpoint, seed=seed, key_size=40).requests for seed in (1, 1, 2))
    assert one == same != other
    assert Counter(request.operation for request in one) == {"get": 20, "set": 20}
    get = next(request for request in one if request.operation == "get").content
    assert get.startswith(b"*2\r\n$3\r\nGET\r\n$40\r\nprony:")
    driver.finish()


def test_few_keys_are_asked_for_most_where_they_are_skewed(endpoint: Endpoint) -> None:
    driver = RedisDriver()
    asked = [
        prepared(driver, endpoint, operation="get", keys=keys, distinct=2000, key_count=1000).requests
        for keys in ("uniform", "zipf")
    ]
    even, skewed = (Counter(request.content for request in requests).most_common(1)[0][1] for requests in asked)
    assert even < 20
    assert skewed > 100
    driver.finish()


def test_who_may_not_come_in_is_told(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="WRONGPASS"):
        prepared(RedisDriver(), replace(endpoint, password="wrong"))
    monkeypatch.setenv("REDIS_SECRET", SECRET)
    driver = RedisDriver()
    prepared(driver, replace(endpoint, password=""), password_env="REDIS_SECRET")
    driver.finish()
    with pytest.raises(InputError, match="NO_SUCH"):
        prepared(RedisDriver(), endpoint, password_env="NO_SUCH")


def test_where_nobody_listens_is_told(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="no connection to"):
        prepared(RedisDriver(), Endpoint(path=str(tmp_path / "none")))
