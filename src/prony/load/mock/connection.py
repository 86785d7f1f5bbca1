"""One connection of the mock: requests are read and stamped, answers are written at once, straight to the socket.

The loop's own transports gather writes until all callbacks have run, and then nobody could say when a chunk left.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Protocol

from prony.load import stamps
from prony.load.mock.ground_truth import Truth
from prony.load.mock.http import BadRequestError, Reader, Request, answer

_READ = 1 << 16
_MOST_KEPT = 256
_LONGEST_KEPT = 8192
_SECOND_NS = 10**9
_RESET = struct.pack("ii", 1, 0)  # linger for no time: the peer is told of a reset, not of an end


class Plan(Protocol):
    """What is done for a request. It writes at once, or sets `busy` and calls `done` when it has written all."""

    def begin(self, line: MockConnection, at_ns: int, /) -> None: ...


class MockContext:
    """What all connections share: the plans of requests that came before, the truth, and what the clocks differ by."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, truth: Truth, plan: Callable[[Request], Plan], *, with_stamps: bool
    ) -> None:
        self.loop = loop
        self.truth = truth
        self.plan = plan
        self.with_stamps = with_stamps
        self.plans: dict[bytes, Plan] = {}
        self.lines: set[MockConnection] = set()
        self.axis = stamps.ClockOffset()

    def keep(self, data: bytes, plan: Plan) -> None:
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
        self._asked: deque[tuple[Plan, bool, int]] = deque()
        self._reader = Reader()
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
            self.write(answer(b'{"error":"this is no request"}', status=400))
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
