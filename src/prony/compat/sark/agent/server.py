"""A SARK orchestrator that an agent serves: where it is, and how far away."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prony.agent.checks import AgentCheck
from prony.client.wire import base_of
from prony.compat.sark.agent.orchestrator_client import OrchestratorClient
from prony.compat.sark.agent.queues import WorkerQueues
from prony.errors import InputError, TransportError
from prony.ports.agent_link import CommandAnswer

if TYPE_CHECKING:
    from prony.agent.identity import Slot
    from prony.agent.logs import AgentLog
    from prony.compat.sark.agent.link import SarkLink

DEFAULT_REDIS_PORT = 6379


@dataclass(frozen=True)
class SarkServer:
    """A SARK orchestrator to serve instead of a Prony server, and the Redis that its jobs wait in."""

    url: str
    redis_host: str
    redis_port: int = DEFAULT_REDIS_PORT

    @property
    def base(self) -> str:
        """Return its address as a slot keeps it: never taken for a Prony server's."""
        return f"sark+{self.url}"

    def connect(self, slot: Slot, log: AgentLog) -> SarkLink:
        from prony.compat.sark.agent.link import SarkLink

        return SarkLink(self, slot, log)

    def check(self) -> list[AgentCheck]:
        found = asyncio.run(_check_sark(self))
        here, redis = "--sark sets its address; GET /api/health must answer 200", found.redis_error or "reachable"
        there = "--redis-host and --redis-port set its address"
        return [
            AgentCheck("orchestrator", found.is_healthy, f"{found.server}: {found.told}", here),
            AgentCheck("redis", found.redis_error is None, f"{found.redis}: {redis}", there),
        ]

    def test(self) -> CommandAnswer:
        """Tell how the orchestrator and its Redis were reached; exit code 3 where one of them was not."""
        found = asyncio.run(_check_sark(self))
        redis = found.redis_error or f"reachable, {found.redis_round_trip_ms:.1f} ms away"
        lines = (f"orchestrator  {found.server}: {found.told}", f"redis         {found.redis}: {redis}")
        code = 0 if found.is_healthy else 1
        if found.status is None or found.redis_error is not None:
            code = 3
        document = asdict(found) | {"healthy": found.is_healthy and found.redis_error is None}
        return CommandAnswer(document, lines, code)


def read_server(url: str, redis_host: str | None, redis_port: int) -> SarkServer:
    """Return whom to serve; where nobody says it, the Redis is on the orchestrator's host."""
    base = base_of(url).removesuffix("/api")
    if not 1 <= redis_port <= 65535:
        raise InputError(f"{redis_port} is not a port", hint="--redis-port is a number from 1 to 65535")
    return SarkServer(base, redis_host or urlsplit(base).hostname or "localhost", redis_port)


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


async def _check_sark(sark: SarkServer) -> SarkConnection:
    """See whether an orchestrator and its Redis answer; no worker is registered and no job taken."""
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
    orchestrator = OrchestratorClient(url)
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


async def _redis(sark: SarkServer) -> tuple[float | None, str | None]:
    queues = WorkerQueues(sark.redis_host, sark.redis_port)
    try:
        await queues.check()
        begin_ns = time.perf_counter_ns()
        await queues.check()
        return (time.perf_counter_ns() - begin_ns) / 1e6, None
    except TransportError as exc:
        return None, exc.message
    finally:
        await queues.close()
