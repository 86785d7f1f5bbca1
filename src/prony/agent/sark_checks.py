"""The addresses of a SARK in, how far away its orchestrator and its Redis are out."""

from __future__ import annotations

import time
from dataclasses import dataclass

from prony.agent.sark_orchestrator import Orchestrator
from prony.agent.sark_queues import Queues
from prony.agent.settings import SarkSettings
from prony.errors import TransportError


@dataclass(frozen=True)
class SarkConnection:
    """What is None was not reached; `told` says how the orchestrator answered, or why not."""

    server: str
    told: str
    status: int | None
    round_trip_ms: float | None
    redis: str
    redis_round_trip_ms: float | None
    redis_error: str | None

    @property
    def is_healthy(self) -> bool:
        return self.status == 200


async def check_sark(sark: SarkSettings) -> SarkConnection:
    status, trip_ms, told = await _orchestrator(sark.url)
    redis_ms, redis_error = await _redis(sark)
    return SarkConnection(
        server=sark.url,
        told=told,
        status=status,
        round_trip_ms=trip_ms,
        redis=f"{sark.redis_host}:{sark.redis_port}",
        redis_round_trip_ms=redis_ms,
        redis_error=redis_error,
    )


async def _orchestrator(url: str) -> tuple[int | None, float | None, str]:
    orchestrator = Orchestrator(url)
    try:
        await orchestrator.health()  # opens the connection
        begin_ns = time.perf_counter_ns()
        status = (await orchestrator.health()).status_code
        trip_ms = (time.perf_counter_ns() - begin_ns) / 1e6
    except TransportError as exc:
        return None, None, exc.message
    finally:
        await orchestrator.close()
    return status, trip_ms, f"reachable (HTTP {status}), {trip_ms:.1f} ms away"


async def _redis(sark: SarkSettings) -> tuple[float | None, str | None]:
    queues = Queues(sark.redis_host, sark.redis_port)
    try:
        await queues.check()
        begin_ns = time.perf_counter_ns()
        await queues.check()
        return (time.perf_counter_ns() - begin_ns) / 1e6, None
    except TransportError as exc:
        return None, exc.message
    finally:
        await queues.close()
