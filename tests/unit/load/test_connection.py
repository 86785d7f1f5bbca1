"""One line in this process: what it stamps, what it tells its owner, and what it leaves behind."""

from __future__ import annotations

import gc
import socket
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from load.house import OK, Server, Visit, serving
from prony.load.connection import CLOSED, IDLE, ConnectionPool, LoadConnection
from prony.load.http import HttpWire
from prony.load.poll import Poll
from prony.load.stamps import ClockOffset, Warmth
from prony.ports.driver import Cause, Endpoint
from servers.ports import refusing_port
from servers.waiting import wait_for

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Owner:
    """Takes down what a line tells, and ends the loop at each of its words."""

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self.told: list[str] = []

    def _hear(self, word: str, line: LoadConnection) -> None:
        self.told.append(word)
        self.line = line
        self._poll.is_over = True

    def connection_made(self, line: LoadConnection) -> None:
        self._hear("opened", line)

    def connection_refused(self, line: LoadConnection) -> None:
        self._hear("refused", line)

    def request_done(self, line: LoadConnection) -> None:
        self._hear("finished", line)

    def lost(self, line: LoadConnection) -> None:
        self._hear("lost", line)


class Bench:
    """A line, its owner and the loop."""

    def __init__(self, server: Server) -> None:
        self.poll = Poll()
        self.warmth = Warmth()
        self.warmth.wait()
        place = (server.endpoint.host, server.endpoint.port)
        self.site = ConnectionPool((int(socket.AF_INET), place), self.poll, HttpWire, {})
        self.owner = Owner(self.poll)
        self.line = LoadConnection(self.site, self.owner)

    def wait(self) -> str:
        """Run until the line tells something; return what."""
        self.poll.is_over = False
        self.poll.run()
        return self.owner.told[-1]

    def ask(self) -> str:
        self.line.begin(7, 3, 0, GET)
        return self.wait()


@contextmanager
def bench_on(server: Server) -> Iterator[Bench]:
    bench = Bench(server)
    try:
        yield bench
    finally:
        bench.line.close()
        bench.poll.close()
        bench.warmth.close()


def test_a_line_opens_asks_and_is_idle_again() -> None:
    with serving() as server, bench_on(server) as bench:
        bench.line.open()
        assert bench.wait() == "opened"
        for _ in range(3):
            assert bench.ask() == "finished"
            line = bench.line
            assert (line.state, line.status, line.cause, line.bytes_in) == (IDLE, 200, 0, len(OK))
            assert (line.index, line.request, line.due_ns) == (7, 3, line.sent_ns)
        assert (server.connections, bench.site.opened) == (1, 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's stamps are Linux's")
def test_the_kernels_stamp_lies_between_the_sending_and_the_reading() -> None:
    with serving() as server, bench_on(server) as bench:
        bench.line.open()
        bench.wait()
        bench.ask()
        line = bench.line
        assert line.sent_ns < line.first_ns <= line.end_ns
        assert line.lag_ns > 0
        assert line.end_ns + line.lag_ns < time.perf_counter_ns()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's stamps are Linux's")
def test_a_loop_that_comes_late_does_not_make_the_reply_late() -> None:
    with serving() as server, bench_on(server) as bench:
        bench.line.open()
        bench.wait()
        begin = time.monotonic()
        bench.line.begin(0, 0, 0, GET)
        wait_for(lambda: bool(server.visits), "the request to arrive")
        # However long it took to arrive, nobody looks for much longer.
        time.sleep(0.3 + 3 * (time.monotonic() - begin))
        bench.wait()
        # The reply was there long before anybody looked.
        assert bench.line.lag_ns > bench.line.end_ns - bench.line.sent_ns


def test_the_offset_of_the_clocks_is_the_same_whenever_it_is_measured() -> None:
    axis = ClockOffset()
    before = axis.offset_ns
    axis.measure()
    assert abs(axis.offset_ns - before) < 100_000_000


def test_an_idle_line_that_the_server_closes_is_lost_and_no_failure() -> None:
    async def hangs_up(visit: Visit) -> None:
        visit.write(OK)
        await visit.writer.drain()
        visit.close()

    with serving(hangs_up) as server, bench_on(server) as bench:
        bench.line.open()
        bench.wait()
        assert bench.ask() == "finished"
        assert bench.wait() == "lost"
        assert bench.line.state == CLOSED


def test_a_line_can_be_opened_again() -> None:
    async def hangs_up(visit: Visit) -> None:
        visit.reset()

    with serving(hangs_up) as server, bench_on(server) as bench:
        for _ in range(3):
            bench.line.open()
            assert bench.wait() == "opened"
            assert bench.ask() == "finished"
            assert bench.line.cause == Cause.RESET
        assert server.connections == 3


def test_nothing_of_a_closed_connection_stays_though_nobody_collects_it() -> None:
    gc.collect()
    gc.disable()
    try:
        with serving() as server, bench_on(server) as bench:
            bench.line.open()
            bench.wait()
            bench.ask()
            assert bench.line.wire is not None
            wire = weakref.ref(bench.line.wire)
            bench.line.close()
            assert wire() is None
    finally:
        gc.enable()


def test_a_port_that_nobody_serves_refuses() -> None:
    with refusing_port() as port, bench_on(Server(Endpoint(host="127.0.0.1", port=port))) as bench:
        bench.line.open()
        assert bench.wait() == "refused"
        assert bench.line.cause == Cause.REFUSED
