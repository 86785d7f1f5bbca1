"""Take jobs from the lists of a SARK's Redis one at a time, and put results into them.

A plain pop would lose a job with whoever dies after it. So a job is moved, in one step, to a list beside its queue that
only this worker looks into, and stays there until its result is in the list of results: a worker that comes back finds
it. To everybody else it is popped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prony.compat.sark.nouns import RESULTS_QUEUE, capability_queue, held_queue, worker_queue
from prony.errors import CapacityError, TransportError

_CONNECT_S = 5.0
_ANSWER_S = 10.0


class WorkerQueues:
    """Close it when done."""

    def __init__(self, host: str, port: int) -> None:
        self.address = f"{host}:{port}"
        self._held: dict[str, str] = {}
        try:
            from redis.asyncio import Redis
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError as exc:
            raise CapacityError(
                "work for a SARK orchestrator needs the package redis",
                hint='pip install "prony[redis]"',
                code="missing_package",
            ) from exc
        self._redis: Any = Redis(
            host=host,
            port=port,
            db=0,
            decode_responses=True,
            socket_connect_timeout=_CONNECT_S,
            socket_timeout=_ANSWER_S,
            # Who calls knows what a repeat means: a result that is pushed again is one too many.
            retry=Retry(NoBackoff(), 0),
        )

    async def close(self) -> None:
        await self._redis.aclose()

    async def check(self) -> None:
        """Raise where no Redis answers."""
        async with self._translate_errors():
            await self._redis.ping()

    def belong(self, worker_id: str, words: Sequence[str]) -> None:
        """Look into a worker's own queue, and then into those of its compute units, in their order."""
        names = [worker_queue(worker_id), *map(capability_queue, words)]
        self._held = {name: held_queue(name, worker_id) for name in names}

    async def take(self, *, is_new: bool = True) -> str | None:
        """Return the job that is next: one that is held already, or else, where a new one will do, from a queue."""
        async with self._translate_errors():
            for name, held in self._held.items():
                if (found := await self._redis.lindex(held, -1)) is not None:
                    # Whoever missed this worker may have put it there again.
                    await self._redis.lrem(name, 0, found)
                    return str(found)
            for name, held in self._held.items() if is_new else ():
                if (found := await self._redis.rpoplpush(name, held)) is not None:
                    return str(found)
        return None

    async def report(self, job_id: str, result: str) -> None:
        """Hand in a result and let go of its job, both or neither."""
        async with self._translate_errors(), self._redis.pipeline(transaction=True) as both:
            both.lpush(RESULTS_QUEUE, result)
            for held in self._held.values():
                both.lrem(held, 0, job_id)
            await both.execute()

    async def forget(self, job_id: str) -> None:
        """Let go of a job that is to have no result from here."""
        async with self._translate_errors(), self._redis.pipeline(transaction=True) as all_:
            for held in self._held.values():
                all_.lrem(held, 0, job_id)
            await all_.execute()

    async def hand_back(self, job_id: str) -> None:
        """Put a job back to where it came from, before all that wait there."""
        async with self._translate_errors():
            for name, held in self._held.items():
                if job_id in await self._redis.lrange(held, 0, -1):
                    async with self._redis.pipeline(transaction=True) as both:
                        both.lrem(held, 0, job_id)
                        both.rpush(name, job_id)
                        await both.execute()

    @asynccontextmanager
    async def _translate_errors(self) -> AsyncIterator[None]:
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError) as exc:
            raise TransportError(
                f"cannot use the Redis at {self.address}: {str(exc) or type(exc).__name__}",
                hint="is it running there? --redis-host and --redis-port set its address",
            ) from exc
