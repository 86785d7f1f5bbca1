"""Parse HTTP requests for the mock server and build its small answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

import httptools

MOST_BODY = 64 * 2**20


class BadRequestError(Exception):
    """What came is no request that can be read."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `keeps`: the connection stays open after it."""

    method: str
    target: str
    body: bytes
    keeps: bool


class Reader:
    """Feeds a parser. After `feed`, `is_whole` says whether those bytes were exactly one request."""

    __slots__ = ("_begun", "_body", "_found", "_parser", "_size", "_target", "expects", "is_partial", "is_whole")

    def __init__(self) -> None:
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._found: list[Request] = []
        self._begun = 0
        self.is_partial = False
        self.is_whole = False
        self._begin()

    def _begin(self) -> None:
        self._target = b""
        self._body: list[bytes] = []
        self._size = 0
        self.expects = False

    def feed(self, data: bytes) -> list[Request]:
        """Return the requests that these bytes complete."""
        assert self._parser is not None
        was_partial = self.is_partial
        self._found = []
        self._begun = 0
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            raise BadRequestError(str(exc)) from exc
        self.is_whole = not was_partial and not self.is_partial and len(self._found) == self._begun == 1
        return self._found

    def close(self) -> None:
        self._parser = None  # it holds us: nobody collects circles in the mock's process

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._begun += 1
        self.is_partial = True
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 6 and name.lower() == b"expect":
            self.expects = value.lower() == b"100-continue"

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MOST_BODY:
            raise BadRequestError("too large")
        self._body.append(body)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        self.is_partial = False
        self.expects = False
        method = self._parser.get_method().decode("ascii")
        target = self._target.decode("latin-1")
        self._found.append(Request(method, target, b"".join(self._body), self._parser.should_keep_alive()))


def answer(body: bytes, *, status: int = 200, kind: bytes = b"application/json", has_body: bool = True) -> bytes:
    """Return a whole answer; without its body for HEAD."""
    try:
        phrase = HTTPStatus(status).phrase.encode()
    except ValueError:
        phrase = b"Unknown"
    top = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (status, phrase, kind, len(body))
    return top + body if has_body else top
