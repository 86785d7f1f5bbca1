"""Descriptors and instants in, calls out: the event loop of a client process.

It knows nothing but sockets that became readable and instants that came, and asks for the next due one between any
two events, because a batch of sixty replies would else hold up a request by a millisecond.
"""

from __future__ import annotations

import select
import selectors
import socket
from collections.abc import Callable
from heapq import heappop, heappush
from time import perf_counter_ns as clock
from typing import Protocol

from prony.load.pacing import Alarm

READ = 1
WRITE = 4
_NEVER = 2**62

Call = Callable[[], None]


class _Waiting(Protocol):
    """What epoll is: here so that other systems can be the same."""

    def register(self, fd: int, eventmask: int) -> None: ...
    def modify(self, fd: int, eventmask: int) -> None: ...
    def unregister(self, fd: int) -> None: ...
    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class Selected:
    """Epoll's face on whatever this system has (kqueue, poll)."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        self._selector = selector or selectors.DefaultSelector()

    def register(self, fd: int, eventmask: int) -> None:
        self._selector.register(fd, _mask(eventmask))

    def modify(self, fd: int, eventmask: int) -> None:
        self._selector.modify(fd, _mask(eventmask))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        return [(key.fd, mask) for key, mask in self._selector.select(timeout)]

    def close(self) -> None:
        self._selector.close()


def _mask(eventmask: int) -> int:
    read = selectors.EVENT_READ if eventmask & READ else 0
    return read | (selectors.EVENT_WRITE if eventmask & WRITE else 0)


def _waiting() -> _Waiting:
    return select.epoll() if hasattr(select, "epoll") else Selected()


class Poll:
    """The loop. Calls are made one after another; each must be short."""

    def __init__(self, waiting: _Waiting | None = None) -> None:
        self._waiting = waiting or _waiting()
        self._calls: dict[int, Call] = {}
        self._timers: list[tuple[int, int, Call]] = []
        self._made = 0
        self._ended: list[socket.socket] = []
        self._alarm = Alarm() if waiting is None else None
        self._armed_ns = 0
        if self._alarm is not None and self._alarm.fd >= 0:
            self._waiting.register(self._alarm.fd, READ)
        else:
            self._alarm = None
        self.is_exact = False  # look at the clock between any two events
        self.awake_ns = 0  # of the time before an instant: not slept through, because sleepers wake late
        self.after: Call | None = None  # made after each batch of events
        self.is_over = False

    # Descriptors

    def watch(self, fd: int, call: Call, events: int = READ) -> None:
        """Call when something can be read (or written) there."""
        self._waiting.register(fd, events)
        self._calls[fd] = call

    def rewatch(self, fd: int, call: Call, events: int) -> None:
        self._waiting.modify(fd, events)
        self._calls[fd] = call

    def forget(self, fd: int) -> None:
        self._waiting.unregister(fd)
        del self._calls[fd]

    def discard(self, sock: socket.socket) -> None:
        """Forget a socket now and close it after this batch of events, which may still name its descriptor."""
        self.forget(sock.fileno())
        self._ended.append(sock)

    # Instants

    def at(self, at_ns: int, call: Call) -> None:
        """Call at this instant, or as soon after it as can be."""
        self._made += 1
        heappush(self._timers, (at_ns, self._made, call))

    def run(self) -> None:
        """Go on until `is_over`."""
        poll, calls, timers = self._waiting.poll, self._calls, self._timers
        while not self.is_over:
            next_ns = timers[0][0] if timers else _NEVER
            left_ns = next_ns - clock()
            if left_ns <= 0:
                self._ring()
                # Whatever the instants ask for, sockets have their turn too.
                left_ns = 0
            for fd, _ in poll(self._patience(next_ns, left_ns)):
                call = calls.get(fd)
                if call is not None:
                    call()
                    if self.is_exact and timers and timers[0][0] <= clock():
                        self._ring()
            if self.after is not None:
                self.after()
            if self._ended:
                self._close_ended()

    def _patience(self, next_ns: int, left_ns: int) -> float | None:
        """Return how long to sleep: not at all shortly before an instant that matters."""
        if left_ns <= self.awake_ns:
            return 0
        early_ns = next_ns - self.awake_ns
        if self._alarm is None:
            return None if next_ns == _NEVER else max(early_ns - clock(), 0) / 1e9
        if self._armed_ns != early_ns:
            self._armed_ns = early_ns
            self._alarm.set(early_ns)
        return None

    def _ring(self) -> None:
        """Make the calls whose instant has come; what these ask for waits for the next round, however late it is."""
        timers, now = self._timers, clock()
        call = heappop(timers)[2]
        if not timers or timers[0][0] > now:
            call()
            return
        calls = [call]
        while timers and timers[0][0] <= now:
            calls.append(heappop(timers)[2])
        for call in calls:
            call()

    def _close_ended(self) -> None:
        for sock in self._ended:
            sock.close()
        self._ended.clear()

    def close(self) -> None:
        self._close_ended()
        if self._alarm is not None:
            self._alarm.close()
        self._waiting.close()
