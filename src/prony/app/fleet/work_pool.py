"""Processes that work for a server: as many as may work at once, started when needed, ended with what they hold."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, ParamSpec, Self, TypeVar

from prony.app.fleet.closing import ClosingError
from prony.app.fleet.work_process import LENGTH, NO_MEMORY, WorkLimits, encode_message
from prony.errors import CapacityError, PronyError, StoreError

Order = TypeVar("Order")
Answer = TypeVar("Answer")
P = ParamSpec("P")
R = TypeVar("R")
_WORKER = ("-P", "-m", "prony.app.worker")
_ATTEMPTS = 2
_LONGEST_END_S = 2.0
# Answers up to this size are unpickled on the event loop; larger ones would stall it.
_SMALL_BYTES = 2**16


@dataclass(frozen=True)
class Trade(Generic[Order, Answer]):
    """What a pool's processes do: `module` has the function, and a `main` that carries out orders by it.

    `on_loss` is what is raised for an order that two processes died of, `on_limit` for one that went over its limits.
    """

    verb: str
    module: str
    carry_out: Callable[[Order], Answer]
    on_loss: Callable[[], PronyError]
    on_limit: Callable[[], PronyError]
    limits: WorkLimits | None = None
    most_waiting: int = 10_000


class WorkPool(Generic[Order, Answer]):
    """`most` processes; with 0 a thread of this one works. They hold one order each and nothing between orders."""

    def __init__(self, trade: Trade[Order, Answer], most: int) -> None:
        self._trade = trade
        self._most = most
        self._places = asyncio.Semaphore(max(1, most))
        self._waiting = 0
        self._idle: list[_Worker] = []
        # Every process that may still be there, also one that was killed a moment ago or holds an order.
        self._all: set[_Worker] = set()
        self._starts: set[asyncio.Task[_Worker]] = set()
        self._closed = False
        # Of its own: whoever reads the database must not wait behind this.
        self._threads = ThreadPoolExecutor(max(1, most), thread_name_prefix="prony-work")

    async def do(self, order: Order) -> Answer:
        """Carry out one order. What kills a process once may have been the system; what kills two is told."""
        if self._most == 0:
            return await self.in_thread(self._trade.carry_out, order)
        if self._waiting >= self._trade.most_waiting:
            raise CapacityError(
                f"{self._waiting} requests wait for a process that {self._trade.verb}",
                hint="try again in a moment", code="busy",
            )  # fmt: skip
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._attempt(order)
        finally:
            self._places.release()

    async def in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a thread of this pool, beside the event loop."""
        if self._closed:
            raise ClosingError()
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **kwargs))

    async def warm(self) -> None:
        """Have a process ready: it takes most of a second to start, and a job has just been lent."""
        if self._most and not self._closed and not self._idle and not self._places.locked():
            async with self._places:
                self._idle.append(await self._start_one())

    async def close(self) -> None:
        """Return when none of the processes is left; orders that are under way or wait are refused."""
        self._closed = True
        await asyncio.gather(*self._starts, return_exceptions=True)
        for worker in self._all.difference(self._idle):
            worker.kill()
        await asyncio.gather(*(worker.end() for worker in self._all))
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _attempt(self, order: Order) -> Answer:
        for _ in range(_ATTEMPTS):
            worker = await self._idle_or_new()
            try:
                answer = await self._ask(worker, order)
            except (asyncio.IncompleteReadError, ConnectionError):
                await worker.end()
                if worker.hit_limit:
                    raise self._trade.on_limit() from None
                continue
            except TimeoutError:
                worker.kill()
                raise self._trade.on_limit() from None
            except BaseException:  # the answer may still come, and would be taken for the next one's
                worker.kill()
                raise
            self._idle.append(worker)
            if isinstance(answer, PronyError):
                raise answer
            return answer
        raise self._trade.on_loss()

    async def _idle_or_new(self) -> _Worker:
        if self._closed:
            raise ClosingError()
        return self._idle.pop() if self._idle else await self._start_one()

    async def _start_one(self) -> _Worker:
        """Start a process; whoever goes away meanwhile leaves none behind."""
        self._all = {worker for worker in self._all if worker.is_there}
        start = asyncio.create_task(_Worker.start(self._trade.verb, self._trade.module))
        self._starts.add(start)
        start.add_done_callback(self._note_start)
        try:
            return await start
        except asyncio.CancelledError:
            if start.done() and not start.cancelled() and start.exception() is None:
                start.result().kill()
            raise

    def _note_start(self, start: asyncio.Task[_Worker]) -> None:
        self._starts.discard(start)
        if not start.cancelled() and start.exception() is None:
            self._all.add(start.result())

    async def _ask(self, worker: _Worker, order: Order) -> Answer | PronyError:
        async with asyncio.timeout(self._trade.limits.wall_s if self._trade.limits is not None else None):
            raw = await worker.ask(order)
        answer: Answer | PronyError
        answer = pickle.loads(raw) if len(raw) <= _SMALL_BYTES else await self.in_thread(pickle.loads, raw)
        return answer


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, verb: str, module: str) -> Self:
        command = (sys.executable, *_WORKER, module)
        pipe = asyncio.subprocess.PIPE
        # Each carries out one order at a time: threads of its own would only stand in the others' way.
        environment = os.environ | {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment)
        except OSError as exc:
            hint = "check the limit on processes of this user: ulimit -u"
            raise StoreError(f"cannot start a process that {verb}: {exc.strerror}", hint=hint) from exc
        return cls(process)

    @property
    def is_there(self) -> bool:
        return self._process.returncode is None

    @property
    def hit_limit(self) -> bool:
        """Did it end because it used more CPU time or memory than an order may take?"""
        return self._process.returncode in (NO_MEMORY, -getattr(signal, "SIGPROF", 0) or None)

    async def ask(self, order: object) -> bytes:
        orders, answers = self._process.stdin, self._process.stdout
        if orders is None or answers is None:
            raise ConnectionError("the process has no pipes")
        orders.write(encode_message(order))
        await orders.drain()
        (size,) = LENGTH.unpack(await answers.readexactly(LENGTH.size))
        return await answers.readexactly(size)

    async def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _LONGEST_END_S)
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        if self.is_there:
            with suppress(ProcessLookupError):
                self._process.kill()
