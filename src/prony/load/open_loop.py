"""Open load: each request leaves when it is due, on any idle line or a new one, so that none waits for a reply."""

from __future__ import annotations

import os
from array import array
from collections import deque
from time import perf_counter_ns as clock

from prony.load.connection import CLOSED, IDLE, LoadConnection
from prony.load.orders import read_numbers
from prony.load.poll import NEVER
from prony.load.sender import PAUSE_NS, Sender
from prony.ports.driver import Cause

# So many requests that are due are sent before sockets have their turn again.
_AT_ONCE = 32
# A client that is later than this opens few lines at a time and none in reserve: replies that it has not read yet hold
# lines enough, and connections in their place would make it later still.
_LATE_NS = 1_000_000
_OPENING_LATE = 8
_PATIENCE_NS = 5 * 10**9
_DROPPED, _REFUSED, _CUT = int(Cause.DROPPED), int(Cause.REFUSED), int(Cause.CUT)

# A sleeping process wakes some tens of microseconds late, so the last of the time before a request is waited for awake:
# so much of it, and never more than this share, because a client that seems busy cannot be told from one that is.
_AWAKE_NS = 60_000
_AWAKE_SHARE = 10

Issue = tuple[int, int, int]  # index, request, due


class OpenLoop:
    """Lines that are idle wait in `_idle`, the last used on top: it is the least likely to have been closed."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._order = order = sender.order
        self._poll = sender.poll
        self._lines = sender.lines
        self._content_of = sender.content_of
        self._salted = sender.salted
        self._requests = sender.requests
        self._indices = read_numbers(order.file("indices"))
        self._dues = read_numbers(order.file("dues"))
        self._at = 0
        self._idle: dict[LoadConnection, None] = {}
        self._pending: deque[Issue] = deque()
        self._connecting = 0
        self._refused_until_ns = 0
        # Of sessions: which indices are not answered yet, and who waits for each.
        self._after = read_numbers(order.shared_file("requests.after")) if order.sessions else None
        self._unanswered: set[int] = set()
        self._held: dict[int, Issue] = {}
        # When a turn was answered whose next one has not been due yet.
        self._followed = frozenset(self._after or ())
        self._answered_ns: dict[int, int] = {}
        self._poll.on_due = self._pace
        self._poll.awake_ns = _awake_ns(self._dues)

    def on_start(self) -> None:
        for line in list(self._lines):
            if line.state == IDLE:
                self._idle[line] = None
            elif line.state == CLOSED:
                self._sender.drop_line(line)
            else:
                self._connecting += 1
        if len(self._dues):
            # A client that is hopelessly late is not left to send until tomorrow.
            patience_ns = max(self._order.drain_ns, _PATIENCE_NS)
            self._poll.at(self._sender.begin_ns + self._dues[-1] + patience_ns, self._give_up)
        self._pace()

    def _give_up(self) -> None:
        if self._sender.is_sending:
            self._sender.cut()

    def _pace(self) -> None:
        """Send what is due, and come again when the next is.

        Where no line is idle one request is enough: the replies that wait to be read may free some.
        """
        dues, total, begin_ns = self._dues, len(self._dues), self._sender.begin_ns
        at = self._at
        last = min(at + _AT_ONCE, total)
        now = clock() - begin_ns
        while at < last and dues[at] <= now:
            self._at = at + 1
            self._issue(self._indices[at], begin_ns + dues[at])
            at += 1
            if not self._idle:
                break
        if self._at < total:
            self._poll.due_ns = begin_ns + dues[at]
        else:
            self._poll.due_ns = NEVER
            self._sender.end()

    def _issue(self, index: int, due_ns: int) -> None:
        number = index % self._requests
        if self._after is not None:
            before = self._after[number]
            self._unanswered.add(index)
            before_index = index - number + before
            if before >= 0 and before_index in self._unanswered:
                self._held[before_index] = (index, number, due_ns)
                return
            due_ns = max(due_ns, self._answered_ns.pop(before_index, 0))
        self._dispatch((index, number, due_ns))

    def _dispatch(self, issue: Issue) -> None:
        most = self._order.most_in_flight
        if most is not None and self._sender.in_flight + len(self._pending) >= most:
            self._unsent(issue, _DROPPED)
            return
        if self._idle:
            line, _ = self._idle.popitem()
            self._send(line, issue)
            now = line.sent_ns
        elif (now := clock()) < self._refused_until_ns:
            self._unsent(issue, _REFUSED)
            return
        else:
            self._pending.append(issue)
            if now - issue[2] < _LATE_NS or self._connecting < _OPENING_LATE:
                self._open_one()
        # One in reserve, more where many are under way: opening takes a while, and nothing may wait for it.
        reserve = len(self._idle) + self._connecting - len(self._pending)
        if now - issue[2] < _LATE_NS and reserve < 1 + (self._sender.in_flight >> 3):
            self._open_spare()

    def _open_spare(self) -> None:
        most = self._order.most_in_flight
        if clock() >= self._refused_until_ns and (most is None or len(self._lines) < most):
            self._open_one()

    def _open_one(self) -> None:
        self._connecting += 1
        self._sender.new_line().open()

    def _send(self, line: LoadConnection, issue: Issue) -> None:
        self._sender.in_flight += 1
        self._sender.sent += 1
        index, number, due_ns = issue
        salted = self._salted
        line.begin(index, number, due_ns, self._content_of(number) if salted is None else salted(index, number))

    def _unsent(self, issue: Issue, cause: int) -> None:
        self._sender.record_unsent(*issue, cause)
        self._release(issue[0])

    def _release(self, index: int) -> None:
        """A turn of a session is over, in whatever way: the next one may go; it was not due before."""
        if self._after is None:
            return
        self._unanswered.discard(index)
        held = self._held.pop(index, None)
        if held is not None:
            self._dispatch((held[0], held[1], max(held[2], clock())))
        elif index % self._requests in self._followed:
            self._answered_ns[index] = clock()

    # What lines tell

    def request_done(self, line: LoadConnection) -> None:
        if line.cause and self._sender.was_stale(line):
            self._sender.in_flight -= 1
            self._sender.sent -= 1
            self._sender.asked_again += 1
            issue = (line.index, line.request, line.due_ns)
            self._sender.drop_line(line)
            self._dispatch(issue)
            return
        self._sender.record(line)
        index = line.index
        if line.state == IDLE:
            self._free(line)
        else:
            self._sender.drop_line(line)
        self._release(index)
        if self._sender.end_ns:
            self._sender.look_whether_over()

    def _free(self, line: LoadConnection) -> None:
        if self._pending:
            self._send(line, self._pending.popleft())
        else:
            self._idle[line] = None

    def on_open(self, line: LoadConnection) -> None:
        self._connecting -= 1
        self._free(line)
        if self._connecting < min(len(self._pending), _OPENING_LATE):
            self._open_one()

    def on_refused(self, line: LoadConnection) -> None:
        self._connecting -= 1
        cause = line.cause
        self._sender.drop_line(line)
        self._refused_until_ns = clock() + PAUSE_NS
        while len(self._pending) > self._connecting:
            self._unsent(self._pending.popleft(), cause)
        if self._sender.end_ns:
            self._sender.look_whether_over()

    def lost(self, line: LoadConnection) -> None:
        self._idle.pop(line, None)
        self._sender.drop_line(line)

    # The end

    def is_waiting(self) -> bool:
        return bool(self._pending or self._held)

    def on_end(self) -> None:
        self._at = len(self._dues)
        self._poll.due_ns = NEVER

    def on_cut(self) -> None:
        begin_ns = self._sender.begin_ns
        for at in range(self._at, len(self._dues)):
            index = self._indices[at]
            self._sender.record_unsent(index, index % self._requests, begin_ns + self._dues[at], _CUT)
        self._at = len(self._dues)
        self._poll.due_ns = NEVER
        waiting = [*self._pending, *self._held.values()]
        self._pending.clear()
        self._held.clear()
        for issue in waiting:
            self._sender.record_unsent(*issue, _CUT)


def _awake_ns(dues: array[int]) -> int:
    """Return how long before each request the process does not sleep; on a single core it would keep others waiting."""
    if len(dues) < 2 or (os.cpu_count() or 1) < 2:
        return 0
    return min(_AWAKE_NS, (dues[-1] - dues[0]) // len(dues) // _AWAKE_SHARE)
