"""Do each thing at its instant: one timer for everything that the mock writes."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush, heapreplace
from time import perf_counter_ns
from typing import Protocol

from prony.load.poll import Timer

_NEVER = 1 << 62
# A process that sleeps wakes some tens of microseconds late; so it wakes this much early, and waits for the rest awake.
_EARLY_NS = 25_000
# With more than this, something is due all the time: waiting awake would take the whole core, and others need it.
_FEW = 64
# So long at most before the loop may read again.
_HOLD_NS = 300_000


class Item(Protocol):
    """Something due. `step` does what is due now and returns when it is due again, 0 where it is over; then `end`."""

    def step(self, due_ns: int, now_ns: int, /) -> int: ...

    def end(self, now_ns: int, /) -> None: ...


class _LoopTimer:
    """What an alarm does, by the loop's own timer: where there is no alarm, instants are exact to a millisecond."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wheel: Wheel) -> None:
        self._loop = loop
        self._wheel = wheel
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at_ns: int) -> None:
        self.close()
        if at_ns < _NEVER - _EARLY_NS:
            self._handle = self._loop.call_later(max(0, at_ns - perf_counter_ns()) / 1e9, self._wheel.turn)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class Wheel:
    """Everything that is due, in the order in which it is."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[int, int, Item]] = []
        self._count = 0
        self._set_ns = _NEVER
        self._is_turning = False
        alarm = Timer()
        self._fd = alarm.fd
        self._alarm: Timer | _LoopTimer = alarm if alarm.fd >= 0 else _LoopTimer(loop, self)
        if self._fd >= 0:
            loop.add_reader(self._fd, self.turn)

    def at(self, due_ns: int, item: Item) -> None:
        """Have the item's `step` called at that instant, or as soon as can be after it."""
        self._count += 1
        heappush(self._heap, (due_ns, self._count, item))
        if due_ns < self._set_ns and not self._is_turning:
            self._set(due_ns)

    def turn(self) -> None:
        """Do all that is due, and set the alarm for what is next."""
        heap = self._heap
        clock = perf_counter_ns
        now = clock()
        until = now + _HOLD_NS
        early_ns = _EARLY_NS if len(heap) <= _FEW else 0
        self._is_turning = True
        while heap and now < until:
            due, order, item = heap[0]
            if due - now > early_ns:
                break
            while now < due:
                now = clock()
            following = item.step(due, now)
            if following:
                heapreplace(heap, (following, order, item))
            else:
                heappop(heap)
                item.end(now)
            now = clock()
        self._is_turning = False
        # An instant that is past rings at once, after the loop has read what came meanwhile.
        self._set(heap[0][0] if heap else _NEVER)

    def _set(self, due_ns: int) -> None:
        self._set_ns = due_ns
        self._alarm.set(due_ns - _EARLY_NS if len(self._heap) <= _FEW else due_ns)

    def close(self) -> None:
        self._heap.clear()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
        self._alarm.close()
