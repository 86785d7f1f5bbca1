"""Event streams are split into the same events wherever their bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.model.event_stream import (
    StreamMessage,
    framed_by_lines,
    is_event_stream,
    split_events,
    stream_messages,
)
from prony.plugins.drivers.answer import arrivals_ns
from prony.ports.driver import Reply

PARTS = st.sampled_from(
    [b"data: ", b"data:", b"data", b"x", b"{}", b":", b": ping", b"event: e", b"error: no", b"id: 1", b" ", b"\n",
     b"\n\n", b"\r", b"\r\n", b"data: a\n\n", b"data: b\r\n\r\n", b"\xef\xbb\xbf", b"\xc3", b"[DONE]"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PARTS, max_size=25).map(b"".join))
def test_the_short_way_finds_exactly_what_the_long_one_does(body: bytes) -> None:
    assert split_events(body) == framed_by_lines(body)


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=9).filter(lambda data: not set(data) & set(b"\r\n")), max_size=9))
def test_what_was_sent_comes_out_with_the_place_where_each_ended(sent: list[bytes]) -> None:
    events = [b"data: " + data + b"\n\n" for data in sent]
    found = split_events(b"".join(events))
    assert found.data == sent
    assert found.ends == np.cumsum([len(event) for event in events]).tolist()


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_any_of_three_ways(line_end: bytes) -> None:
    body = b"data: one\n\n: a comment\ndata: two\ndata:lines\nid: 7\n\nretry: 5\n\n".replace(b"\n", line_end)
    found = split_events(body)
    assert found.data == [b"one", b"two\nlines"]
    assert found.unfinished == b""


def test_an_event_without_data_is_none() -> None:
    assert split_events(b"event: ping\n\n: beat\n\ndata:\n\ndata: \n\n").data == []


def test_a_name_stays_with_its_event() -> None:
    found = split_events(b"data: a\n\nevent: error\ndata: b\n\ndata: c\n\n")
    assert found.data == [b"a", b"b", b"c"]
    assert found.names == {1: "error"}


def test_an_error_in_a_field_of_its_own_is_an_event_of_that_name() -> None:
    found = split_events(b'error: {"code":400}\n\n')
    assert (found.data, found.names) == ([b'{"code":400}'], {0: "error"})


@pytest.mark.parametrize("body", [b"data: whole\n\ndata: cut", b"data: whole\n\ndata: cut\n"])
def test_what_no_blank_line_has_ended_is_no_event(body: bytes) -> None:
    found = split_events(body)
    assert (found.data, found.unfinished) == ([b"whole"], b"cut")


@pytest.mark.parametrize(
    ("body", "is_one"),
    [
        (b"", True), (b"\n\n", True), (b": ping\n\n", True), (b"data: {", True), (b"event: x\n", True),
        (b"<html>", False), (b'{"error": 1}', False), (b"hello", False),
    ],
)  # fmt: skip
def test_a_stream_is_told_from_other_text_by_how_it_begins(body: bytes, is_one: bool) -> None:
    assert is_event_stream(body) is is_one


def test_a_place_has_the_stamp_of_the_read_that_brought_its_last_byte() -> None:
    reply = Reply(200, np.array([10, 20, 30, 40]), [3, 0, 4, 1], b"aaabbbbc")
    found = arrivals_ns(reply, [1, 3, 4, 7, 8])
    assert found is not None
    assert found.tolist() == [10, 10, 30, 30, 40]


def test_without_stamps_nobody_knows_when() -> None:
    assert arrivals_ns(Reply(200, np.array([], dtype=np.int64), [], b"abc"), [1]) is None


# As it arrives

STREAM = (
    ": beat\n\n"
    'event: job\r\ndata: {"title": "a\u2028b\x85c"}\r\n\r\n'
    "data: one\ndata: two\nid: 7\nretry: 3\n\n"
    "event: nothing\n\n"
    "event: torn\ndata: half"
).encode()


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_messages_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[begin:end] for begin, end in pairwise(places)]
    assert list(stream_messages(pieces)) == [
        StreamMessage("job", '{"title": "a\u2028b\x85c"}'),
        StreamMessage("message", "one\ntwo"),
    ]


@settings(deadline=None)
@given(st.lists(PARTS.filter(lambda part: part != b"\xef\xbb\xbf"), max_size=25))
def test_what_arrives_in_pieces_is_what_the_whole_has(pieces: list[bytes]) -> None:
    found = split_events(b"".join(pieces))
    data = [message.data for message in stream_messages(pieces)]
    assert data == [one.decode(errors="replace") for one in found.data]
