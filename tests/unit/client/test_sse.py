"""Event streams as they arrive: in pieces of any size, with comments, broken off anywhere."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from prony.client.sse import Message, messages

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
    assert list(messages(pieces)) == [
        Message("job", '{"title": "a\u2028b\x85c"}'),
        Message("message", "one\ntwo"),
    ]
