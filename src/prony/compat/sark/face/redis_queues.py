"""The lists that Dumont workers look into, kept in a Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from prony.compat.sark.nouns import RESULTS_QUEUE
from prony.errors import CapacityError, InputError, TransportError

if TYPE_CHECKING:
    from redis.asyncio import Redis

_TIMEOUT_S = 5.0
_HINT = "is Redis running? the server keeps trying; --redis sets its address"


class RedisQueues:
    """Jobs go in on the left and out on the right, as SARK has it."""

    is_exact = False  # who pops is told to nobody

    def __init__(self, url: str) -> None:
        try:
            from redis.asyncio import Redis
        except ModuleNotFoundError as exc:
            raise CapacityError("redis is not installed", hint="pip install 'prony[redis]'") from exc
        if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
            raise InputError(
                f"{url[:200]!r} is not the address of a Redis", hint="as in --redis redis://127.0.0.1:6379/0"
            )
        try:
            self._redis: Redis = Redis.from_url(
                url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, health_check_interval=30
            )
        except ValueError as exc:
            raise InputError(
                f"{url[:200]!r} is not the address of a Redis: {exc}", hint="as in --redis redis://127.0.0.1:6379/0"
            ) from exc

    async def push(self, queue: str, job_ids: Sequence[str]) -> None:
        async with self._translate_errors():
            await self._redis.lpush(queue, *job_ids)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> None:
        async with self._translate_errors(), self._redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.lrem(queue, 0, job_id)
            await pipe.execute()

    async def contents(self, queues: Sequence[str]) -> dict[str, tuple[str, ...]]:
        async with self._translate_errors(), self._redis.pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.lrange(queue, 0, -1)
            found = await pipe.execute()
        return {queue: tuple(_text(one) for one in ids) for queue, ids in zip(queues, found, strict=True)}

    async def sizes(self, queues: Sequence[str]) -> dict[str, int]:
        async with self._translate_errors(), self._redis.pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.llen(queue)
            return dict(zip(queues, await pipe.execute(), strict=True))

    async def results(self, most: int) -> tuple[bytes, ...]:
        async with self._translate_errors():
            found: list[bytes] = await self._redis.lrange(RESULTS_QUEUE, -most, -1)
        return tuple(found[::-1])

    async def forget_result(self, report: bytes) -> None:
        async with self._translate_errors():
            await self._redis.lrem(RESULTS_QUEUE, -1, report)

    async def clear(self, queues: Sequence[str]) -> None:
        async with self._translate_errors():
            await self._redis.delete(*queues)

    async def describe(self) -> dict[str, object]:
        try:
            async with self._translate_errors():
                is_there = bool(await self._redis.ping())
        except TransportError:
            is_there = False
        place: dict[str, Any] = self._redis.connection_pool.connection_kwargs
        return {
            "connected": is_there,
            "host": place.get("host", place.get("path", "localhost")),
            "port": place.get("port", 6379),
            "db": place.get("db", 0),
        }

    async def close(self) -> None:
        await self._redis.aclose()

    @asynccontextmanager
    async def _translate_errors(self) -> AsyncIterator[None]:
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError) as exc:
            raise TransportError(f"Redis does not answer: {exc}", hint=_HINT, code="redis_unreachable") from exc


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
