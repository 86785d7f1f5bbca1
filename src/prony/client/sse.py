"""Bytes of an event stream in, its messages out, as the HTML standard splits them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Message(NamedTuple):
    """One message of an event stream: its kind, and what it says."""

    event: str
    data: str


def messages(chunks: Iterable[bytes]) -> Iterator[Message]:
    """Yield every whole message; comments and the fields that nobody uses are passed over, a torn end is dropped."""
    event, data = "message", list[str]()
    for line in _lines(chunks):
        if not line:
            if data:
                yield Message(event, "\n".join(data))
            event, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "data":
            data.append(value)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield whole lines. Only line feeds end one: what splits text at every Unicode break would tear JSON apart."""
    pending = b""
    for chunk in chunks:
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode(errors="replace")
