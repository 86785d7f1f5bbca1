"""Event loop of a client process: call back on readable sockets and due instants.

It knows nothing but sockets that became readable and instants that came. One instant matters more than the others, the
one at which the next request is due: it is looked for between any two events, because a batch of sixty replies would
else hold up a request by a millisecond.

On Linux a timer is a timerfd, exact to microseconds where the time-out of epoll only knows milliseconds. Elsewhere
there is no descriptor, and whoever waits gives the time that is left as its time-out. A timer only makes a process fit
to run; that it runs at once, though others do, is what `come_first` asks for.
"""

from __future__ import annotations

import ctypes
import os
import select
import selectors
import socket
import sys
import time
from collections.abc import Callable
from heapq import heappop, heappush
from time import perf_counter_ns as clock
from typing import Any, Protocol

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC if sys.platform.startswith("linux") else 0


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanos", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def _kernel() -> Any:
    """Return the C library where it has timerfd, else None."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timerfd_create") else None


def come_first(processes: int) -> bool:
    """Ask to run as soon as there is something to do, before all ordinary processes; return whether it was granted.

    It is for root and whoever may use real-time priorities. Not asked for where `processes` that do so leave no core
    to others: the server must run too.
    """
    if not hasattr(os, "sched_setscheduler") or processes >= len(os.sched_getaffinity(0)):
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except OSError:
        return False
    return True


class Timer:
    """One descriptor that becomes readable at an instant of the axis of `perf_counter_ns`; `fd` is -1 without one."""

    def __init__(self) -> None:
        library = _kernel()
        self.fd = library.timerfd_create(time.CLOCK_MONOTONIC, _FLAGS) if library is not None else -1
        if self.fd < 0:
            return
        self._spec = _Itimerspec()
        self._value = self._spec.value
        self._settime = library.timerfd_settime
        self._settime.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self._at = ctypes.addressof(self._spec)

    def set(self, at_ns: int) -> None:
        """Ring at this instant and not at any that was set before; setting it also silences one that rang."""
        # Zero would disarm it, and an instant that has passed rings at once, as it should.
        self._value.seconds, self._value.nanos = divmod(max(at_ns, 1), 10**9)
        self._settime(self.fd, _ABSOLUTE, self._at, None)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


READ = 1
WRITE = 4
NEVER = 2**62
# Asked for at once; the room for them is made anew each time.
_EVENTS = 128
# Of those that can wait, so many are attended to before the others are looked at again.
EVENTS_CALM = 32

Call = Callable[[], None]


class _Waiting(Protocol):
    """What epoll is: here so that other systems can be the same."""

    def register(self, fd: int, eventmask: int) -> None: ...
    def modify(self, fd: int, eventmask: int) -> None: ...
    def unregister(self, fd: int) -> None: ...
    def poll(self, timeout: float | None, most: int, /) -> list[tuple[int, int]]: ...
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

    def poll(self, timeout: float | None, _most: int, /) -> list[tuple[int, int]]:
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
        # The last of all is never reached, so that there always is a next one.
        self._timers: list[tuple[int, int, Call]] = [(NEVER, 0, _nothing)]
        self._made = 0
        self._ended: list[socket.socket] = []
        # An epoll within the other one, where it is one descriptor among many, however many are in it.
        self._calm: select.epoll | None = None
        self._calm_fds: set[int] = set()
        if waiting is None and hasattr(select, "epoll"):
            self._calm = select.epoll()
            self.watch(self._calm.fileno(), self._attend_calm)
        self._alarm = Timer() if waiting is None else None
        self._armed_ns = 0
        if self._alarm is not None and self._alarm.fd >= 0:
            self._waiting.register(self._alarm.fd, READ)
        else:
            self._alarm = None
        self.due_ns = NEVER  # when `on_due` is called, which says what follows; looked at between any two events
        self.on_due: Call = _nothing
        self.awake_ns = 0  # of the time before `due_ns`: not slept through, because sleepers wake late
        self.after: Call = _nothing  # made after each batch of events
        self.is_over = False

    # Descriptors

    def watch(self, fd: int, call: Call, events: int = READ) -> None:
        """Call when something can be read (or written) there."""
        self._waiting.register(fd, events)
        self._calls[fd] = call

    def rewatch(self, fd: int, call: Call, events: int) -> None:
        self.hurry(fd)
        self._waiting.modify(fd, events)
        self._calls[fd] = call

    def forget(self, fd: int) -> None:
        self.hurry(fd)
        self._waiting.unregister(fd)
        del self._calls[fd]

    def calm(self, fd: int) -> None:
        """From now on this descriptor, which is only read from, can wait: with all that can it has turns of its own."""
        if self._calm is not None and fd not in self._calm_fds:
            self._waiting.unregister(fd)
            self._calm.register(fd, READ)
            self._calm_fds.add(fd)

    def hurry(self, fd: int) -> None:
        """Attend to this descriptor with the others again, if it was calm."""
        if self._calm is not None and fd in self._calm_fds:
            self._calm_fds.remove(fd)
            self._calm.unregister(fd)
            self._waiting.register(fd, READ)

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
        poll, timers = self._waiting.poll, self._timers
        while not self.is_over:
            now = clock()
            if self.due_ns <= now:
                self.on_due()
            if timers[0][0] <= now:
                self._ring()
            if self.is_over:
                break  # type: ignore[unreachable] # an instant may have ended it
            next_ns = self.due_ns - self.awake_ns
            if timers[0][0] < next_ns:  # noqa: PLR1730 - calling `min` costs twice as much
                next_ns = timers[0][0]
            if next_ns <= now:
                # Whatever the instants ask for, sockets have their turn too.
                self._attend(poll(0, _EVENTS))
            elif next_ns == self._armed_ns:
                self._attend(poll(None, _EVENTS))
            else:
                self._attend(poll(self._patience(next_ns, now), _EVENTS))
            self.after()
            if self._ended:
                self._close_ended()
        self._close_ended()

    def _attend(self, events: list[tuple[int, int]]) -> None:
        """Make the calls of descriptors, and between any two of them the one that is due."""
        call_of = self._calls.get
        if self.due_ns == NEVER:
            for fd, _ in events:
                call_of(fd, _nothing)()
            return
        for fd, _ in events:
            call_of(fd, _nothing)()
            if self.due_ns <= clock():
                self.on_due()

    def _attend_calm(self) -> None:
        if self._calm is not None:
            self._attend(self._calm.poll(0, EVENTS_CALM))

    def _patience(self, until_ns: int, now_ns: int) -> float | None:
        """Return how long to wait for events, until that instant; where an alarm ends the wait, for ever."""
        if self._alarm is None:
            return None if until_ns >= NEVER - self.awake_ns else (until_ns - now_ns) / 1e9
        self._armed_ns = until_ns
        self._alarm.set(until_ns)
        return None

    def _ring(self) -> None:
        """Make the calls whose instant has come; what these ask for waits for the next round, however late it is."""
        timers, now = self._timers, clock()
        calls = []
        while timers[0][0] <= now:
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
        if self._calm is not None:
            self._calm.close()
        self._waiting.close()


def _nothing() -> None:
    """What is called where nobody asked for a call."""
