"""The lists of a SARK's Redis in, one job at a time out, and results back into them.

A plain pop would lose a job with whoever dies after it. So a job is moved, in one step, from the queue of its compute
unit to the worker's own, and stays there until its result is in the list of results: a worker that comes back finds it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prony.errors import CapacityError, TransportError
from prony.model.sark import RESULTS_QUEUE, capability_queue, worker_queue

_CONNECT_S = 5.0
_ANSWER_S = 10.0


class Queues:
    """Close it when done."""

    def __init__(self, host: str, port: int) -> None:
        self.address = f"{host}:{port}"
        try:
            from redis.asyncio import Redis
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError as exc:
            raise CapacityError(
                "serving a SARK needs the package redis", hint='pip install "prony[redis]"', code="missing_package"
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
        async with self._told():
            await self._redis.ping()

    async def take(self, worker_id: str, words: Sequence[str]) -> str | None:
        """Return the job that is next: one of the worker's own, or else one of its compute units, in their order."""
        own = worker_queue(worker_id)
        async with self._told():
            found = await self._redis.lindex(own, -1)
            for word in words:
                if found is not None:
                    break
                found = await self._redis.rpoplpush(capability_queue(word), own)
        return None if found is None else str(found)

    async def report(self, worker_id: str, job_id: str, result: str) -> None:
        """Hand in a result and let go of its job, both or neither."""
        async with self._told(), self._redis.pipeline(transaction=True) as both:
            both.lpush(RESULTS_QUEUE, result)
            both.lrem(worker_queue(worker_id), 0, job_id)
            await both.execute()

    async def forget(self, worker_id: str, job_id: str) -> None:
        """Let go of a job that is to have no result from here."""
        async with self._told():
            await self._redis.lrem(worker_queue(worker_id), 0, job_id)

    async def hand_back(self, worker_id: str, job_id: str, word: str) -> None:
        """Put a job back to where others find it, before all that wait there."""
        async with self._told(), self._redis.pipeline(transaction=True) as both:
            both.lrem(worker_queue(worker_id), 0, job_id)
            both.rpush(capability_queue(word), job_id)
            await both.execute()

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError) as exc:
            raise TransportError(
                f"cannot use the Redis at {self.address}: {str(exc) or type(exc).__name__}",
                hint="is it running there? --redis-host and --redis-port say where it is",
            ) from exc
