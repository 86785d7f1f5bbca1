"""One client process's sending: lines kept open, a row for every request, limits of time, facts of the process."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns as clock
from time import process_time
from typing import TYPE_CHECKING, Any, Protocol

from prony.load.connection import BUSY, CLOSED, CONNECTING, GREETING, ConnectionPool, LoadConnection
from prony.load.orders import ClientOrder
from prony.load.records import Records
from prony.load.spool import ReplySpool
from prony.ports.driver import Cause, Endpoint

if TYPE_CHECKING:
    from prony.load.tls import Secrets

_TICK_NS = 10_000_000
_AXIS_TICKS = 10
# Lines have this long to open before the load begins; a server that lets them wait is the load's to find out.
_PREOPEN_NS = (10**9, 10 * 10**9)
_OPENING_AT_ONCE = 32
_OPENING_PAUSE_NS = 5_000_000
_TRIES = 3
PAUSE_NS = 100_000_000  # before a server that refused is asked again
_STOP_DRAIN_NS = 10**9
_STALE_NS = 100_000_000
_CUT, _RESET, _TIMEOUT = int(Cause.CUT), int(Cause.RESET), int(Cause.TIMEOUT)


class Loop(Protocol):
    """How requests follow one another. It is told what happens to lines once the load has begun."""

    def on_start(self) -> None: ...
    def on_open(self, line: LoadConnection) -> None: ...
    def on_refused(self, line: LoadConnection) -> None: ...
    def request_done(self, line: LoadConnection) -> None: ...

    def lost(self, line: LoadConnection) -> None:
        """The server closed an idle line."""

    def is_waiting(self) -> bool:
        """Is anything due that has not been sent?"""

    def on_end(self) -> None:
        """Sending is over: what still waits to be sent ends here."""

    def on_cut(self) -> None:
        """The drain is over: what was due and never left is cut."""


@dataclass(frozen=True)
class RequestContents:
    """The bytes of so many requests, by their number; `salted` by their index too, where each run has its own."""

    count: int
    plain: Callable[[int], bytes]
    salted: Callable[[int, int], bytes] | None = None


class Sender:
    """What sends, by a loop that says what is sent when."""

    def __init__(
        self,
        order: ClientOrder,
        site: ConnectionPool,
        contents: RequestContents,
        loop: Callable[[Sender], Loop],
    ) -> None:
        self.order = order
        self.site = site
        self.poll = site.poll
        self.content_of = contents.plain
        self.salted = contents.salted
        self.requests = contents.count
        self.records = Records(order.file("records"))
        self.spool = ReplySpool(order.file("spool")) if order.keeps else None
        self.lines: list[LoadConnection] = []
        self.in_flight = 0
        self.sent = 0
        self.failed = 0
        self.asked_again = 0
        self.begin_ns = 0
        self.end_ns = 0
        self.full_until_ns = 0  # when the first user was done; 0 where none was before the end
        self.is_sending = False
        self.is_real_time = False  # does this process run before ordinary ones?
        site.secrets = _secrets(order.endpoint, site.wire.tls_protocols)
        self._waiting: list[LoadConnection] = []
        self._unsettled = 0
        self._on_ready: Callable[[], None] | None = None
        self._tick_due = 0
        self._ticks = 0
        self._scanned = 0
        self._lags: array[int] = array("q")
        self._in_flights: array[int] = array("q")
        self._cpu_s = 0.0
        self._loop = loop(self)
        # Lines tell the loop itself: a call less for each request.
        self.request_done = self._loop.request_done
        self.lost = self._loop.lost

    # Lines

    def new_line(self) -> LoadConnection:
        line = LoadConnection(self.site, self)
        line.place = len(self.lines)
        self.lines.append(line)
        return line

    def drop_line(self, line: LoadConnection) -> None:
        """Let go of a line for good; the last one takes its place in the list."""
        last = self.lines.pop()
        if last is not line:
            self.lines[line.place] = last
            last.place = line.place
        line.place = -1
        if line.state != CLOSED:
            line.close()

    def was_stale(self, line: LoadConnection) -> bool:
        """Did the server close a connection that had served, in the moment in which it was used again? Servers may, and
        some do after each streamed reply: the request is sent once more, on a new one. Later than that, it was had."""
        is_reset = line.cause == _RESET and line.served and not line.reads and line.state == CLOSED
        return is_reset and line.end_ns - line.sent_ns < _STALE_NS

    def preopen(self, lines: int, on_ready: Callable[[], None]) -> None:
        """Open lines before the load begins, some at a time; one that will not open is tried again in the load."""
        self._on_ready = on_ready
        self._waiting = [self.new_line() for _ in range(lines)]
        self._unsettled = lines
        least_ns, most_ns = _PREOPEN_NS
        patience_ns = min(max(self.order.timeout_ns, least_ns), most_ns) if lines else 0
        self.poll.at(clock() + patience_ns, self._are_open)
        self._open_some()

    def _open_some(self) -> None:
        """Open a few, and more a little later: servers have short queues, and who does not get in waits a second."""
        for _ in range(min(_OPENING_AT_ONCE, len(self._waiting))):
            line = self._waiting.pop()
            line.user = _TRIES
            line.open()
        if self._waiting:
            self.poll.at(clock() + _OPENING_PAUSE_NS, self._open_some)

    def _connect_again(self, line: LoadConnection, *, is_open: bool) -> None:
        tries, line.user = line.user - 1, None
        if not is_open and tries > 0:
            self.poll.at(clock() + PAUSE_NS // 2, partial(self._try_again, line, tries))
            return
        self._unsettled -= 1
        if not self._unsettled:
            self._are_open()

    def _try_again(self, line: LoadConnection, tries: int) -> None:
        if self._on_ready is not None:
            line.user = tries
            line.open()

    def _are_open(self) -> None:
        told, self._on_ready = self._on_ready, None
        if told is not None:
            told()

    # From line to sender

    def connection_made(self, line: LoadConnection) -> None:
        if not self.begin_ns:
            self._connect_again(line, is_open=True)
        else:
            self._loop.on_open(line)

    def connection_refused(self, line: LoadConnection) -> None:
        if not self.begin_ns:
            self._connect_again(line, is_open=False)
        else:
            self._loop.on_refused(line)

    # Rows

    def record(self, line: LoadConnection) -> None:
        """Write the row of a request that was sent."""
        self.in_flight -= 1
        if line.cause:
            self.failed += 1
        self.records.add(line, self.spool.add(line) if self.spool is not None else -1)

    def record_unsent(self, index: int, request: int, due_ns: int, cause: int) -> None:
        """Write the row of a request that never left."""
        self.failed += 1
        self.records.add_unsent(index, request, due_ns, clock(), cause)

    # The course of the load

    def start(self, begin_ns: int) -> None:
        """Begin at this instant, which all processes share."""
        order = self.order
        self.begin_ns = begin_ns
        # Lines that are not open yet are opened in the load, by whoever needs them.
        self._waiting, self._on_ready = [], None
        for line in self.lines:
            line.user = None
        self._cpu_s = process_time()
        self.poll.at(begin_ns, self._begin)
        self._tick_due = begin_ns + _TICK_NS
        self.poll.at(self._tick_due, self._tick)
        if order.duration_ns is not None and not order.at_least and not order.is_open:
            self.poll.at(begin_ns + order.duration_ns, self.end)
        if order.limit_ns is not None:
            self.poll.at(begin_ns + order.limit_ns, self.end)

    def _begin(self) -> None:
        if not self.end_ns:
            self.is_sending = True
            self._loop.on_start()

    def end(self, drain_ns: int | None = None) -> None:
        """Send no more, let what is in flight come home, and cut off what does not."""
        if self.end_ns:
            return
        self.is_sending = False
        self.end_ns = clock()
        self._loop.on_end()
        self.poll.at(self.end_ns + (self.order.drain_ns if drain_ns is None else drain_ns), self.cut)
        self.look_whether_over()

    def stop(self) -> None:
        """Somebody wants it to end: shortly."""
        if self.end_ns:
            self.poll.at(clock() + _STOP_DRAIN_NS, self.cut)
        else:
            self.end(min(self.order.drain_ns, _STOP_DRAIN_NS))

    def look_whether_over(self) -> None:
        if self.end_ns and not self.in_flight and not self._loop.is_waiting():
            self.poll.is_over = True

    def cut(self) -> None:
        """Give up on all that is under way."""
        self.is_sending = False
        self.end_ns = self.end_ns or clock()
        self._loop.on_cut()
        for line in list(self.lines):
            if line.state in (BUSY, CONNECTING, GREETING):
                line.fail(_CUT)
        self.poll.is_over = True

    # Every ten milliseconds

    def _tick(self) -> None:
        now = clock()
        self._lags.append(now - self._tick_due)
        self._in_flights.append(self.in_flight)
        # A loop that was held up for long has one late tick, and not many.
        self._tick_due += _TICK_NS * max(1, -(-(now - self._tick_due) // _TICK_NS))
        self.poll.at(self._tick_due, self._tick)
        self.records.tell(self.sent, self.in_flight, self.site.opened, self.failed)
        self._end_late_ones(now)
        self._ticks += 1
        if self._ticks % _AXIS_TICKS == 0:
            self.site.axis.measure()
            if self.spool is not None:
                self.spool.flush()

    def _end_late_ones(self, now: int) -> None:
        """Look for requests that take too long: at some of the lines in each tick, because looking costs."""
        timeout_ns = self.order.timeout_ns
        rounds = min(max(timeout_ns // (20 * _TICK_NS), 1), 25)
        some = -(-len(self.lines) // rounds)
        begin = self._scanned if self._scanned < len(self.lines) else 0
        self._scanned = begin + some
        limit = now - timeout_ns
        for line in self.lines[begin : begin + some]:
            if line.state == BUSY:
                if line.sent_ns < limit:
                    line.fail(_TIMEOUT)
            elif line.state in (CONNECTING, GREETING) and line.since_ns < limit:
                line.fail(_TIMEOUT)

    # Facts

    def close(self) -> dict[str, Any]:
        """Close everything; return what the process tells of itself."""
        for line in self.lines:
            if line.state != CLOSED:
                line.close()
        cpu_s = process_time() - self._cpu_s
        self.records.tell(self.sent, self.in_flight, self.site.opened, self.failed)
        self.records.close()
        if self.spool is not None:
            self.spool.close()
        return {
            "rows": self.records.rows,
            "sent": self.sent,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "full_until_ns": self.full_until_ns,
            "wall_s": (clock() - self.begin_ns) / 1e9 if self.begin_ns else 0.0,
            "cpu_s": cpu_s,
            "connections_opened": self.site.opened,
            "asked_again": self.asked_again,
            "is_real_time": self.is_real_time,
            "sessions_resumed": self.site.secrets.resumed if self.site.secrets is not None else 0,
            "loop_lags_ns": _quantiles(self._lags),
            "in_flight_mean": sum(self._in_flights) / max(len(self._in_flights), 1),
            "in_flight_max": max(self._in_flights, default=0),
            "rss_peak_mib": _rss_peak_mib(),
            "spool_problem": str(self.spool.problem or "") if self.spool is not None else "",
        }


def _secrets(endpoint: Endpoint, protocols: Sequence[str]) -> Secrets | None:
    if not endpoint.tls:
        return None
    # A client without TLS starts faster without it.
    from prony.load.tls import Secrets

    return Secrets(endpoint, protocols)


def _quantiles(values: array[int]) -> list[int]:
    """Return the median, the 99th percentile and the largest."""
    ordered = sorted(values) or [0]
    return [ordered[int((len(ordered) - 1) * share)] for share in (0.5, 0.99, 1.0)]


def _rss_peak_mib() -> float:
    if sys.platform == "win32":
        import psutil

        return float(psutil.Process().memory_info().peak_wset) / 2**20
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
