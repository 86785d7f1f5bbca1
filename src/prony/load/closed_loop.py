"""Closed load: so many users, each of whom sends the next request when the last one is answered."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from time import perf_counter_ns as clock

from prony.load.connection import CLOSED, IDLE, LoadConnection
from prony.load.orders import sessions_of
from prony.load.sender import PAUSE_NS, Sender
from prony.ports.driver import Cause

_NEVER = 2**62
_MOST_TOGETHER = 16


class User:
    """`lines` are as many as the user sends requests at once; `left` is what of a session is still to be asked, and
    `unsent` how many requests the user may still send."""

    __slots__ = ("fresh", "index", "left", "lines", "number", "pending", "unsent", "was_refused")

    def __init__(self, number: int, unsent: int) -> None:
        self.number = number
        self.unsent = unsent
        self.lines: list[LoadConnection] = []
        self.left: tuple[int, ...] = ()
        self.index = 0  # of the first that is left
        self.pending = 0
        self.fresh = -1  # the index that a connection was last opened for
        self.was_refused = False


class ClosedLoop:
    """Users come and go in steps."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._order = order = sender.order
        self._poll = sender.poll
        self._lines = sender.lines
        self._spool = sender.spool
        self._content_of = sender.content_of
        self._salted = sender.salted
        self._requests = sender.requests
        self._next = order.process
        self._stride = order.processes
        self._limit = _NEVER if order.count is None else order.count
        self._each = _NEVER if order.each is None else order.each
        self._most_users = len(range(order.process, max((users for _, users in order.steps), default=0), self._stride))
        self._sessions = sessions_of(order) if order.sessions else []
        self._next_session = 0
        if self._sessions:
            # Laid out end to end, so that which index is which turn does not hang on who is faster.
            self._begins = [0, *accumulate(map(len, self._sessions))]
            self._next_session = order.process
            self._next = self._index_of(order.process)
        self._users: list[User] = []
        self._spare: list[LoadConnection] = []
        self._wanted = 0
        self._active = 0
        self._opening = 0
        self._until_ns = _NEVER
        self._answered_lines: list[LoadConnection] = []  # in flight still, because what follows leaves at once
        self._add = sender.records.add
        self._together = min(max(order.most_lines // 8, 1), _MOST_TOGETHER)
        self._poll.after = self._send_again
        # Then nothing but the next request follows a reply.
        self._is_plain = not (order.think_ns or order.burst > 1 or order.sessions or order.at_least)

    # The hot path

    def request_done(self, line: LoadConnection) -> None:
        if line.cause and self._sender.was_stale(line):
            self._ask_again(line)
            return
        if line.cause:
            self._sender.failed += 1
        self._add(line, -1 if self._spool is None else self._spool.add(line))
        index = self._next
        if (
            self._is_plain
            and index < self._limit
            and line.state == IDLE
            and line.end_ns < self._until_ns
            and line.user.number < self._wanted
            and line.user.unsent
        ):
            line.user.unsent -= 1
            self._next = index + self._stride
            line.index = index
            lines = self._answered_lines
            lines.append(line)
            if len(lines) >= self._together:
                self._send_again()
        else:
            self._sender.in_flight -= 1
            self._send_next(line.user, line)

    def _send_again(self) -> None:
        """Send the next request on each line that was answered.

        A server that waits must be woken, at the sender's cost: once for several that follow one another, but each time
        where a reply is read between two. So it is done after a few replies, and when there are no more to read.
        """
        lines = self._answered_lines
        if not lines:
            return
        self._answered_lines = []
        self._sender.sent += len(lines)
        content_of, salted, requests = self._content_of, self._salted, self._requests
        for line in lines:
            number = line.index % requests
            line.begin(line.index, number, 0, content_of(number) if salted is None else salted(line.index, number))

    # Users

    def on_start(self) -> None:
        order = self._order
        self._spare = self._lines[::-1]
        if order.duration_ns is not None and not order.at_least:
            self._until_ns = self._sender.begin_ns + order.duration_ns
        for at_ns, users in order.steps:
            if at_ns <= 0:
                self._step(users)
            else:
                self._poll.at(self._sender.begin_ns + at_ns, partial(self._step, users))

    def _step(self, users: int) -> None:
        """From now on so many users, of all processes together; those who are too many stop when they are answered."""
        if not self._sender.is_sending:
            return
        before, self._wanted = self._wanted, len(range(self._order.process, users, self._stride))
        self._users += [User(number, self._each) for number in range(len(self._users), self._wanted)]
        for user in self._users[before : self._wanted]:
            if not user.lines:
                self._enter(user)

    def _enter(self, user: User) -> None:
        self._active += 1
        for _ in range(self._order.burst):
            line = self._spare.pop() if self._spare else self._sender.new_line()
            line.user = user
            user.lines.append(line)
        self._turn(user)

    def _leave(self, user: User) -> None:
        if not user.unsent and not self._sender.full_until_ns:
            self._sender.full_until_ns = clock()
        for line in user.lines:
            self._sender.drop_line(line)
        user.lines = []
        self._active -= 1
        if not self._active and self._is_spent():
            self._sender.end()

    def _is_spent(self) -> bool:
        has_sent = self._each < _NEVER and len(self._users) >= self._most_users
        return has_sent or self._next >= self._limit or self._has_least()

    def _has_least(self) -> bool:
        """Have the time passed and the least count been sent, where both were asked for?"""
        order = self._order
        is_late = order.duration_ns is not None and clock() >= self._sender.begin_ns + order.duration_ns
        return bool(order.at_least) and is_late and self._sender.sent * self._stride >= order.at_least

    # Turns

    def _turn(self, user: User) -> None:
        """Have the user send: once, or a burst."""
        user.was_refused = False
        taken = None
        if user.number < self._wanted and not self._has_least():
            taken = self._take(user)
        if taken is None:
            self._leave(user)
            return
        user.pending = 1  # holds the turn open until all of a burst are under way
        for line in user.lines:
            user.pending += 1
            self._issue(line, taken)
            taken = self._take(user) if line is not user.lines[-1] else None
            if taken is None:
                break
        self._one_less(user)

    def _issue(self, line: LoadConnection, taken: tuple[int, int]) -> None:
        line.index, line.request = taken
        if line.state == IDLE:
            self._send(line)
            return
        line.due_ns = clock()
        self._opening += 1
        if line.state == CLOSED:
            line.open()

    def _ask_again(self, line: LoadConnection) -> None:
        self._sender.in_flight -= 1
        self._sender.sent -= 1
        self._sender.asked_again += 1
        self._issue(line, (line.index, line.request))

    def _take(self, user: User) -> tuple[int, int] | None:
        """Return index and request of what the user sends next, in a session the next turn; None where all is sent."""
        index = self._next
        if not user.unsent:
            return None
        if not self._sessions:
            if index >= self._limit:
                return None
            user.unsent -= 1
            self._next += self._stride
            return index, index % self._requests
        if not user.left:
            user.left, user.index = self._sessions[self._next_session % len(self._sessions)], index
            self._next_session += self._stride
            self._next = self._index_of(self._next_session)
        if user.index >= self._limit:
            user.left = ()
            return None
        user.unsent -= 1
        number, user.left, user.index = user.left[0], user.left[1:], user.index + 1
        return user.index - 1, number

    def _index_of(self, session: int) -> int:
        """Return the index of a session's first turn; after the last session comes the first again."""
        rounds, number = divmod(session, len(self._sessions))
        return rounds * self._begins[-1] + self._begins[number]

    def _send(self, line: LoadConnection) -> None:
        self._sender.in_flight += 1
        self._sender.sent += 1
        index, number, salted = line.index, line.request, self._salted
        line.begin(index, number, 0, self._content_of(number) if salted is None else salted(index, number))

    def _send_next(self, user: User, line: LoadConnection) -> None:
        if line.cause == Cause.RESET and not line.reads and user.fresh == line.index:
            # Accepted only to be thrown out: as good as refused.
            user.was_refused = True
        self._one_less(user)

    def _one_less(self, user: User) -> None:
        user.pending -= 1
        if user.pending:
            return
        if self._sender.end_ns:
            self._leave(user)
            self._sender.look_whether_over()
            return
        pause_ns = PAUSE_NS if user.was_refused else self._order.think_ns
        # Never from here: a server that answers at once would have the calls pile up.
        self._poll.at(clock() + pause_ns if pause_ns else 0, partial(self._turn, user))

    # What lines tell

    def on_open(self, line: LoadConnection) -> None:
        if line.user is not None:
            self._opening -= 1
            line.user.fresh = line.index
            self._send(line)

    def on_refused(self, line: LoadConnection) -> None:
        user = line.user
        if user is not None:
            self._opening -= 1
            self._sender.record_unsent(line.index, line.request, line.due_ns, line.cause)
            user.was_refused = True
            self._one_less(user)

    def lost(self, line: LoadConnection) -> None:
        """The server closed an idle line; it is opened again when its user's turn comes."""

    def on_end(self) -> None:
        self._wanted = 0

    def on_cut(self) -> None:
        """Nobody's request is due before its turn: there is none to cut."""

    def is_waiting(self) -> bool:
        return self._opening > 0
