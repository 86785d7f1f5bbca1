"""Serve one connection of the mock server: parse and stamp requests, and write answers at once, straight to the socket.

The loop's own transports gather writes until all callbacks have run, and then nobody could say when a chunk left.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from time import perf_counter_ns
from typing import Protocol

import httptools

from prony.load import stamps
from prony.load.mock.ground_truth import Truth

MOST_BODY = 64 * 2**20


class BadRequestError(Exception):
    """What came is no request that can be read."""


@dataclass(frozen=True, slots=True)
class MockRequest:
    """One request. `keeps`: the connection stays open after it."""

    method: str
    target: str
    body: bytes
    keeps: bool


class RequestReader:
    """Feeds a parser. After `feed`, `is_whole` says whether those bytes were exactly one request."""

    __slots__ = ("_begun", "_body", "_found", "_parser", "_size", "_target", "expects", "is_partial", "is_whole")

    def __init__(self) -> None:
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._found: list[MockRequest] = []
        self._begun = 0
        self.is_partial = False
        self.is_whole = False
        self._begin()

    def _begin(self) -> None:
        self._target = b""
        self._body: list[bytes] = []
        self._size = 0
        self.expects = False

    def feed(self, data: bytes) -> list[MockRequest]:
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
        self._found.append(MockRequest(method, target, b"".join(self._body), self._parser.should_keep_alive()))


def answer_bytes(body: bytes, *, status: int = 200, kind: bytes = b"application/json", has_body: bool = True) -> bytes:
    """Return a whole answer; without its body for HEAD."""
    try:
        phrase = HTTPStatus(status).phrase.encode()
    except ValueError:
        phrase = b"Unknown"
    top = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (status, phrase, kind, len(body))
    return top + body if has_body else top


_READ = 1 << 16
_MOST_KEPT = 256
_LONGEST_KEPT = 8192
_SECOND_NS = 10**9
_RESET = struct.pack("ii", 1, 0)  # linger for no time: the peer is told of a reset, not of an end


class AnswerPlan(Protocol):
    """What is done for a request. It writes at once, or sets `busy` and calls `done` when it has written all."""

    def begin(self, line: MockConnection, at_ns: int, /) -> None: ...


class MockContext:
    """What all connections share: the plans of requests that came before, the truth, and what the clocks differ by."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        truth: Truth,
        plan: Callable[[MockRequest], AnswerPlan],
        *,
        with_stamps: bool,
    ) -> None:
        self.loop = loop
        self.truth = truth
        self.plan = plan
        self.with_stamps = with_stamps
        self.plans: dict[bytes, AnswerPlan] = {}
        self.lines: set[MockConnection] = set()
        self.axis = stamps.ClockOffset()

    def keep(self, data: bytes, plan: AnswerPlan) -> None:
        if len(data) <= _LONGEST_KEPT:
            if len(self.plans) >= _MOST_KEPT:
                self.plans.clear()
            self.plans[data] = plan


class MockConnection:
    """One connection; one answer at a time, in the order of the requests."""

    __slots__ = (
        "_asked",
        "_desk",
        "_held",
        "_is_counted",
        "_reader",
        "_recv",
        "_send",
        "_sock",
        "_was_peak",
        "busy",
        "closed",
        "closing",
    )

    def __init__(self, sock: socket.socket, transaction: MockContext) -> None:
        self._sock = sock
        self._desk = transaction
        self._send = sock.send
        self._held = bytearray()
        self._asked: deque[tuple[AnswerPlan, bool, int]] = deque()
        self._reader = RequestReader()
        self.busy = self.closed = self.closing = False
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        is_stamped = transaction.with_stamps and stamps.ask_kernel(sock)
        transaction.loop.add_reader(sock.fileno(), self._read_stamped if is_stamped else self._read)
        transaction.lines.add(self)
        self._is_counted = True
        self._was_peak = transaction.truth.count_connection()

    def _read(self) -> None:
        try:
            data = self._sock.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        at_ns = perf_counter_ns()
        if data:
            self._take(data, at_ns)
        else:
            self.drop()

    def _read_stamped(self) -> None:
        try:
            data, extra, _, _ = self._sock.recvmsg(_READ, stamps.ROOM)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, extra = b"", []
        at_ns = perf_counter_ns()
        if not data:
            self.drop()
            return
        if extra:
            seconds, rest = stamps.unpack(extra[0][2])
            lag_ns = at_ns - (seconds * _SECOND_NS + rest - self._desk.axis.offset_ns)
            if 0 <= lag_ns < _SECOND_NS:  # else the wall clock was set
                self._desk.truth.read_lag.append(lag_ns)
                at_ns -= lag_ns
        self._take(data, at_ns)

    def _take(self, data: bytes, at_ns: int) -> None:
        if not (self.busy or self._reader.is_partial or self._asked):
            plan = self._desk.plans.get(data)
            if plan is not None:
                plan.begin(self, at_ns)
                return
        self._parse(data, at_ns)

    def _parse(self, data: bytes, at_ns: int) -> None:
        try:
            requests = self._reader.feed(data)
        except BadRequestError:
            self.write(answer_bytes(b'{"error":"this is not a valid request"}', status=400))
            self.drop()
            return
        if self._reader.expects and not self.busy:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._reader.expects = False
        plans = [self._desk.plan(request) for request in requests]
        if self._reader.is_whole and requests[0].keeps:
            self._desk.keep(data, plans[0])
        self._asked.extend((plan, request.keeps, at_ns) for plan, request in zip(plans, requests, strict=True))
        self._next()

    def _next(self) -> None:
        while self._asked and not (self.busy or self.closed):
            plan, keeps, at_ns = self._asked.popleft()
            self.closing = not keeps
            plan.begin(self, at_ns)
            if self.closing and not self.busy:
                self.close()

    def done(self) -> None:
        """The answer is written."""
        self.busy = False
        if self.closing:
            self.close()
        elif self._asked:
            self._next()

    def write(self, data: bytes) -> None:
        """Write now; what the socket does not take waits until it does."""
        if self._held:
            self._held += data
            return
        try:
            sent = self._send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.drop()
            return
        if sent < len(data):
            self._desk.truth.held_back += 1
            self._held += data[sent:]
            self._desk.loop.add_writer(self._sock.fileno(), self._write_held)

    def _write_held(self) -> None:
        try:
            del self._held[: self._send(self._held)]
        except BlockingIOError:
            return
        except OSError:
            self.drop()
            return
        if not self._held:
            self._desk.loop.remove_writer(self._sock.fileno())
            if self.closing and not self.busy:
                self.drop()

    def close(self) -> None:
        """Close when everything is written."""
        self.closing = True
        if not self._held:
            self.drop()

    def reset(self) -> None:
        """Break the connection."""
        if not self.closed:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.drop()

    def drop(self) -> None:
        """Let the connection go at once."""
        if self.closed:
            return
        self.closed = True
        self._desk.loop.remove_reader(self._sock.fileno())
        self._desk.loop.remove_writer(self._sock.fileno())
        self._sock.close()
        self._reader.close()
        self._desk.lines.discard(self)
        self._desk.truth.lines_open -= self._is_counted

    def uncount(self) -> None:
        """Leave this connection out of the truth: it asks about the mock itself."""
        if self._is_counted:
            self._is_counted = False
            self._desk.truth.uncount_connection(self._was_peak)


def refuse(sock: socket.socket) -> None:
    """Close a connection that was just made."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()
