"""Replies of Redis are framed right wherever the network cuts them."""

from __future__ import annotations

from typing import Any

import pytest
from driver_lines import MemoryLine
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.plugins.drivers.redis.resp import NotRespError, Reader, encode_command
from prony.plugins.drivers.redis.wire import RedisWire
from prony.ports.driver import Cause

OK = [("done", 0, Cause.OK)]


def line(**options: Any) -> MemoryLine:
    made = MemoryLine(RedisWire, {"depth": 1, **options})
    made.wire.connection_made()
    return made


def blob(value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(value), value)


REPLIES = st.recursive(
    st.one_of(
        st.sampled_from(
            [b"+OK\r\n", b":12\r\n", b"_\r\n", b"#t\r\n", b",1.5\r\n", b"(123456789\r\n", b"$-1\r\n", b"*-1\r\n"]
        ),
        st.binary(max_size=40).map(blob),
        st.just(b"=7\r\ntxt:abc\r\n"),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: b"*%d\r\n" % len(items) + b"".join(items)),
        st.lists(inner, max_size=4).map(lambda items: b"~%d\r\n" % len(items) + b"".join(items)),
        st.lists(st.tuples(inner, inner), max_size=3).map(
            lambda pairs: b"%%%d\r\n" % len(pairs) + b"".join(key + value for key, value in pairs)
        ),
    ),
    max_leaves=8,
)


@given(st.lists(REPLIES, min_size=1, max_size=5), st.lists(st.integers(0, 300), max_size=12))
@settings(max_examples=count_examples(200), deadline=None)
def test_a_pipeline_is_done_once_with_its_last_byte(replies: list[bytes], cuts: list[int]) -> None:
    found = line(depth=len(replies))
    found.wire.send(b"...")
    whole = b"".join(replies)
    assert found.fed(whole[:-1], cuts) == []
    assert found.fed(whole[-1:], []) == OK


def test_a_push_between_replies_is_no_reply() -> None:
    found = line()
    found.wire.send(b"...")
    assert found.fed(b">2\r\n+invalidate\r\n*1\r\n+key\r\n", []) == []
    assert found.fed(b"|1\r\n+ttl\r\n:3\r\n+OK\r\n", [3, 11]) == OK


@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("size", [0, 5, 256])
def test_the_short_way_and_the_long_way_agree(depth: int, size: int) -> None:
    whole = blob(b"\r" * size) * depth
    for cuts in ([], [1], [4], [len(whole) - 1]):
        found = line(depth=depth, value_size=size)
        found.wire.send(b"...")
        assert found.fed(whole, cuts) == OK


def test_values_of_another_size_are_not_taken_for_those_expected() -> None:
    found = line(depth=2, value_size=5)
    found.wire.send(b"...")
    assert found.fed(blob(b"1234") + blob(b"12345"), []) == OK
    found.wire.send(b"...")
    # As many bytes as two values have, and only one reply.
    assert found.fed(blob(b"x" * 15), []) == []
    assert found.fed(b"+OK\r\n", []) == OK


@pytest.mark.parametrize(
    ("reply", "status"), [(b"-ERR no\r\n", 1), (b"-OOM full\r\n", 6), (b"-STRANGE x\r\n", 1), (b"!6\r\nNOAUTH\r\n", 3)]
)
def test_an_error_is_a_status_and_does_not_end_the_pipeline(reply: bytes, status: int) -> None:
    found = line(depth=3)
    found.wire.send(b"...")
    assert found.fed(b"+OK\r\n" + reply, [2, 7]) == []
    assert found.fed(b"+OK\r\n", []) == [("done", status, Cause.STATUS)]
    found.wire.send(b"...")
    assert found.fed(b"+OK\r\n" * 3, []) == OK


def test_a_nil_is_wrong_content_only_where_the_key_must_exist() -> None:
    for must_exist, cause in ((True, Cause.CONTENT), (False, Cause.OK)):
        found = line(must_exist=must_exist)
        found.wire.send(b"...")
        assert found.fed(b"$-1\r\n", [1]) == [("done", 0, cause)]
    found = line(must_exist=True)
    found.wire.send(b"...")
    assert found.fed(b"*2\r\n$-1\r\n$1\r\na\r\n", []) == OK


@pytest.mark.parametrize("nonsense", [b"HTTP/1.1 200 OK\r\n", b"$x\r\n", b"+OK\r\n+OK\r\n", b"*a\r\n"])
def test_nonsense_is_malformed(nonsense: bytes) -> None:
    found = line()
    found.wire.send(b"...")
    assert ("failed", Cause.MALFORMED) in found.fed(nonsense, [])


def test_a_line_that_never_ends_is_given_up() -> None:
    reader = Reader()
    for _ in range(65):
        reader.feed(b"+" + b"a" * 999)
    with pytest.raises(NotRespError):
        reader.feed(b"a" * 1000)


def test_requests_wait_for_the_greeting_and_a_refused_one_fails_the_line() -> None:
    for reply, told in ((b"+OK\r\n", ("ready",)), (b"-WRONGPASS no\r\n", ("failed", Cause.STATUS))):
        found = line(greeting=encode_command(b"AUTH", b"x").decode("latin-1"), greetings=1)
        assert found.written == [b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n"]
        assert found.told == []
        assert found.fed(reply, [2]) == [told]


def test_an_end_within_a_reply_is_not_the_same_as_an_end_before_it() -> None:
    found = line()
    found.wire.send(b"...")
    assert found.wire.eof_received() == Cause.RESET
    found.fed(b"$5\r\nab", [])
    assert found.wire.eof_received() == Cause.TRUNCATED
