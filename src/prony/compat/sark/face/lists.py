"""The lists that workers look into, kept in this process: no Redis is needed, and who takes a job is known.

Nothing is lost with them: what waits stands in the store and is put here again, and a result is recorded before whoever
pushed it is answered.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence

from prony.compat.sark.nouns import RESULTS_QUEUE
from prony.errors import CapacityError, PronyError

_MOST_BYTES = 64 * 2**20
_JOBS = "jobs:"


class Lists:
    """The face sets what happens: `allows` says whether a worker may have anything, `lend` lends it the job that it
    takes, `record` keeps a report."""

    is_exact = True

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._lists: defaultdict[str, deque[bytes]] = defaultdict(deque)
        self._bytes = 0
        self._grown = asyncio.Event()
        self.allows: Callable[[str], bool] = lambda _: True
        self.lend: Callable[[str, str], Awaitable[bool]] | None = None
        self.record: Callable[[bytes], Awaitable[None]] | None = None

    # As the bridge uses them

    async def push(self, queue: str, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            self.add(queue, job_id.encode(), left=True)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            self.take_out(queue, job_id.encode(), 0)

    async def contents(self, queues: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {queue: tuple(one.decode(errors="replace") for one in self.range(queue, 0, -1)) for queue in queues}

    async def sizes(self, queues: Sequence[str]) -> dict[str, int]:
        return {queue: self.size(queue) for queue in queues}

    async def results(self, most: int) -> tuple[bytes, ...]:
        return tuple(self.range(RESULTS_QUEUE, -most, -1)[::-1])

    async def forget_result(self, report: bytes) -> None:
        self.take_out(RESULTS_QUEUE, report, -1)

    async def clear(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self._bytes -= sum(map(len, self._lists.pop(queue, ())))

    async def describe(self) -> dict[str, object]:
        return {"connected": True, "host": self.host, "port": self.port, "db": 0}

    async def close(self) -> None:
        self._grown.set()

    # As workers do

    async def pop(self, queue: str, worker_id: str) -> bytes | None:
        """Give the job that has waited longest; lent in the same moment, where it is known who takes it."""
        if worker_id and not self.allows(worker_id):
            return None
        while self._lists.get(queue):
            found = self._lists[queue].pop()
            self._shrink(queue, found)
            if not queue.startswith(_JOBS) or not worker_id or self.lend is None:
                return found
            try:
                if await self.lend(found.decode(errors="replace"), worker_id):
                    return found
            except PronyError:  # the store is away: nobody gets it until it can be noted who has it
                self._lists[queue].append(found)
                self._bytes += len(found)
                return None
        return None

    async def deliver(self, report: bytes) -> None:
        """Take a report; where it cannot be recorded now, it waits here for the next round."""
        try:
            if self.record is not None:
                await self.record(report)
                return
        except PronyError:
            pass
        self.add(RESULTS_QUEUE, report, left=True)

    async def grown(self, timeout_s: float | None) -> None:
        """Wait until something was added, or the time is over."""
        self._grown.clear()
        try:
            await asyncio.wait_for(self._grown.wait(), timeout_s)
        except TimeoutError:
            return

    def add(self, queue: str, value: bytes, *, left: bool) -> int:
        if self._bytes + len(value) > _MOST_BYTES:
            raise CapacityError(
                f"the lists for Dumont workers are full ({_MOST_BYTES // 2**20} MiB)",
                hint="start workers that empty them, or keep them in a Redis: prony server --redis URL",
                code="lists_full",
            )
        found = self._lists[queue]
        found.appendleft(value) if left else found.append(value)
        self._bytes += len(value)
        self._grown.set()
        return len(found)

    def take_out(self, queue: str, value: bytes, count: int) -> int:
        """Remove a value as often as it is there, or so often from the left, or, below zero, from the right."""
        values = list(self._lists.get(queue, ()))
        places = [place for place, one in enumerate(values) if one == value]
        chosen = set(places if not count else places[:count] if count > 0 else places[count:])
        if chosen:
            self._lists[queue] = deque(one for place, one in enumerate(values) if place not in chosen)
            self._shrink(queue, value * len(chosen))
        return len(chosen)

    def range(self, queue: str, start: int, stop: int) -> list[bytes]:
        values = list(self._lists.get(queue, ()))
        size = len(values)
        begin = max(0, start + size if start < 0 else start)
        return values[begin : (stop + size if stop < 0 else stop) + 1]

    def size(self, queue: str) -> int:
        return len(self._lists.get(queue, ()))

    def _shrink(self, queue: str, gone: bytes) -> None:
        self._bytes -= len(gone)
        if not self._lists[queue]:
            del self._lists[queue]
