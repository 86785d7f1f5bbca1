"""Orders in, opened results out, by processes of their own: as many as may work at once, started when needed."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from typing import Self

from prony.app.fleet.opening import LENGTH, Arrived, MergeOrder, Order, carried_out, message
from prony.errors import PronyError, StoreError

_ATTEMPTS = 2
_LONGEST_END_S = 5.0


class Openers:
    """`most` processes; with 0 a thread of this one opens. They hold one order each and nothing between orders."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places = asyncio.Semaphore(max(1, most))
        self._idle: list[_Opener] = []

    async def open(self, order: Order | MergeOrder) -> Arrived:
        """Open one result. What kills a process once may have been the system; what kills two is told."""
        if self._most == 0:
            return await asyncio.to_thread(carried_out, order)
        async with self._places:
            for _ in range(_ATTEMPTS):
                opener = self._idle.pop() if self._idle else await _Opener.start()
                try:
                    answer = await opener.ask(order)
                except (asyncio.IncompleteReadError, ConnectionError):
                    await opener.end()
                    continue
                except BaseException:  # the answer may still come, and would be taken for the next one's
                    opener.kill()
                    raise
                self._idle.append(opener)
                if isinstance(answer, PronyError):
                    raise answer
                return answer
        raise StoreError(
            "the process that opens results ended while it read this one",
            hint="does the system kill it for want of memory? see the server's log, and give it more",
            code="opener_lost",
        )

    async def warm(self) -> None:
        """Have a process ready: it takes most of a second to start, and a job has just been lent."""
        if self._most and not self._idle and not self._places.locked():
            async with self._places:
                self._idle.append(await _Opener.start())

    async def close(self) -> None:
        openers, self._idle = self._idle, []
        await asyncio.gather(*(opener.end() for opener in openers))


class _Opener:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Self:
        # Not by -m: what it pickles would be of a module that has another name here.
        command = (sys.executable, "-c", "from prony.app.fleet.opening import main; main()")
        pipe = asyncio.subprocess.PIPE
        # Each opens one result at a time: threads of its own would only stand in the others' way.
        environment = os.environ | {"POLARS_MAX_THREADS": "1"}
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment)
        except OSError as exc:
            hint = "is there a limit on processes?"
            raise StoreError(f"cannot start a process that opens results: {exc.strerror}", hint=hint) from exc
        return cls(process)

    async def ask(self, order: Order | MergeOrder) -> Arrived | PronyError:
        orders, answers = self._process.stdin, self._process.stdout
        if orders is None or answers is None:
            raise ConnectionError("the process has no pipes")
        orders.write(message(order))
        await orders.drain()
        (size,) = LENGTH.unpack(await answers.readexactly(LENGTH.size))
        answer: Arrived | PronyError = pickle.loads(await answers.readexactly(size))
        return answer

    async def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _LONGEST_END_S)
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
