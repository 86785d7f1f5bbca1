"""Split a stream of server-sent events into its events: a whole body, or bytes as they arrive.

Lines end in LF, CR or CRLF; a blank line ends an event; comments and unknown fields are passed over; an event without
data is none. What the stream breaks off in the middle of is no event: `unfinished` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|\Z)")
_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?:\r\n|\n|\r)")  # the end of a line, and a line with nothing in it
_LONGEST_BLANK = 4
_FIELD = re.compile(rb"\s*(data|event|id|retry|error)?:")


class Events(NamedTuple):
    """The events of a stream, side by side because there are many.

    `ends` are counts of bytes up to and with the blank line that completed each; `names` are of those that have one;
    `unfinished` is the data of an event that no blank line has ended.
    """

    data: list[bytes]
    ends: list[int]
    names: dict[int, str]
    unfinished: bytes


class StreamMessage(NamedTuple):
    """One event of a stream that is read while it comes."""

    event: str
    data: str


def stream_messages(chunks: Iterable[bytes]) -> Iterator[StreamMessage]:
    """Yield every whole event as its last byte arrives; one that has no name is a `message`, a torn end is dropped."""
    pending = bytearray()
    for chunk in chunks:
        seen = max(0, len(pending) - _LONGEST_BLANK)
        pending += chunk
        blanks = [match.end() for match in _BLANK.finditer(pending, seen)]
        if not blanks:
            continue
        found = framed_by_lines(bytes(pending[: blanks[-1]]))
        del pending[: blanks[-1]]
        for number, data in enumerate(found.data):
            yield StreamMessage(found.names.get(number, "message"), data.decode(errors="replace"))


def split_events(body: bytes) -> Events:
    """Return the events of a stream. The usual layout takes a short way that finds exactly what the long one does."""
    *blocks, rest = body.split(b"\n\n")
    # Every block is one line of data: no other line ends, and each begins as the first does.
    is_usual = (
        b"\r" not in body
        and body.startswith(b"data: ")
        and body.count(b"\n") == 2 * len(blocks) + rest.count(b"\n")
        and body.count(b"\n\ndata: ") == len(blocks) - 1 + rest.startswith(b"data: ")
    )
    data = [block[6:] for block in blocks]
    if not is_usual or b"" in data:
        return framed_by_lines(body)
    ends = list(accumulate([len(block) + 2 for block in blocks]))
    return Events(data, ends, {}, _event(rest.split(b"\n"))[0])


def framed_by_lines(body: bytes) -> Events:
    """Return the events of any stream, read line by line."""
    found = Events([], [], {}, b"")
    lines: list[bytes] = []
    at = len(_BOM) if body.startswith(_BOM) else 0
    while at < len(body):
        match = _LINE.match(body, at)
        assert match is not None  # the pattern matches the empty text too
        at = match.end()
        if match[1]:
            lines.append(match[1])
            continue
        data, name = _event(lines)
        lines = []
        if data:
            if name:
                found.names[len(found.data)] = name
            found.data.append(data)
            found.ends.append(at)
    return found._replace(unfinished=_event(lines)[0])


def _event(lines: Sequence[bytes]) -> tuple[bytes, str]:
    """Return the data and the name that the lines between two blank ones tell."""
    data: list[bytes] = []
    name = ""
    for line in lines:
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
        elif field == b"error":  # no field of the standard: how llama.cpp told of errors until late in 2025
            data.append(value)
            name = "error"
    return b"\n".join(data), name


def is_event_stream(body: bytes) -> bool:
    """Does it begin like one, whole or cut short?"""
    start = body.removeprefix(_BOM).lstrip(b"\r\n")
    return not start or _FIELD.match(start) is not None
