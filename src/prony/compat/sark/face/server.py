"""Serve SARK's API and the workers' lists beside the server's own interface."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import structlog
import uvicorn

from prony.compat.sark.face.bridge import Bridge
from prony.compat.sark.face.http_app import create_sark_app
from prony.compat.sark.face.lists import Lists
from prony.compat.sark.face.orchestrator import Orchestrator
from prony.compat.sark.face.redis_queues import RedisQueues
from prony.compat.sark.face.resp import served_lists
from prony.compat.sark.face.settings import FaceSettings
from prony.errors import AccessError, CapacityError
from prony.server.connections import Connections
from prony.server.listening import is_loopback_at, listening_at, url_at
from prony.server.protocol import count_connections, protocol_for

if TYPE_CHECKING:
    from prony.app.fleet.fleet import Fleet

_KEEP_ALIVE_S = 75
_CANCEL_AGAIN_S = 0.5
_GRACE_S = 5
_log = structlog.get_logger("prony.server")


@dataclass(frozen=True)
class SarkOptions:
    """`is_for_anyone`: somebody has said that whoever reaches the port may do everything."""

    host: str = "127.0.0.1"
    port: int = 5000
    redis: str = ""
    lists_port: int = 6379
    is_for_anyone: bool = False
    settings: FaceSettings = field(default_factory=FaceSettings)

    def open(self) -> AbstractContextManager[OpenSarkFace]:
        """Listen, and refuse what would let strangers in."""
        return opened_face(self)


def _check_reach(options: SarkOptions, *, is_local: bool) -> None:
    """Refuse to let others in: whoever reaches this face may submit, delete and report whatever they like."""
    if not is_local and not options.is_for_anyone:
        raise AccessError(
            f"SARK's API has no tokens, and {options.host} can be reached from outside of this machine: anyone could "
            "delete campaigns, run models on workers and report invented results",
            hint="use --sark-bind 127.0.0.1 with a tunnel, or say --sark-open-to-anyone on a network that you trust",
            code="sark_unprotected",
        )


@dataclass(frozen=True)
class OpenSarkFace:
    """Where it listens: for HTTP, and, where no Redis is named, for workers that speak as to one."""

    warnings: ClassVar[tuple[str, ...]] = ("sark_lease_lost", "sark_result_dropped", "sark_queues")

    options: SarkOptions
    listening: socket.socket
    for_lists: socket.socket | None
    is_local: bool
    url: str

    @property
    def lists_url(self) -> str:
        """Where workers find their lists; a password in it is nobody's to read."""
        if self.for_lists is not None:
            return url_at(self.options.host, self.for_lists).replace("http:", "redis:", 1) + "/0"
        parts = urlsplit(self.options.redis)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @property
    def addresses(self) -> dict[str, str]:
        return {"sark": self.url, "sark_redis": self.lists_url}

    @property
    def lines(self) -> tuple[str, ...]:
        """Say who may use it."""
        who = "anyone on this machine" if self.is_local else "ANYONE who reaches the port"
        return (
            f"  SARK    {self.url}/api: {who} may use it, without a token",
            f"          workers' lists at {self.lists_url}",
        )

    def serve(self, fleet: Fleet, connections: Connections) -> AbstractAsyncContextManager[Bridge]:
        return sark_served(fleet, self, connections)


@contextmanager
def opened_face(options: SarkOptions) -> Iterator[OpenSarkFace]:
    """Listen, before anything else is begun; refuse what would let strangers in."""
    with ExitStack() as stack:
        listening = stack.enter_context(listening_at(options.host, options.port, option="--sark-port"))
        is_local = is_loopback_at(listening)
        _check_reach(options, is_local=is_local)
        for_lists = None
        if not options.redis:
            for_lists = stack.enter_context(_listening_for_lists(options))
        yield OpenSarkFace(options, listening, for_lists, is_local, url_at(options.host, listening))


def _listening_for_lists(options: SarkOptions) -> socket.socket:
    try:
        return listening_at(options.host, options.lists_port, option="--sark-redis-port")
    except CapacityError as exc:
        there = f"redis://{options.host}:{options.lists_port}/0"
        hint = f"is a Redis there? then use it: --redis {there}; or --sark-redis-port 0 takes any free port"
        raise CapacityError(exc.message, hint=hint, code=exc.code) from exc


@asynccontextmanager
async def sark_served(
    fleet: Fleet, face: OpenSarkFace, connections: Connections | None = None
) -> AsyncIterator[Bridge]:
    """Serve a fleet that has started, until the block ends; its connections are counted among those given."""
    connections = connections or count_connections()
    async with AsyncExitStack() as stack:
        bridge = await stack.enter_async_context(_run_bridge(fleet, face, connections))
        app = create_sark_app(Orchestrator(bridge), only_local=face.is_local)
        config = uvicorn.Config(
            app, http=protocol_for(connections), ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, proxy_headers=False, timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )  # fmt: skip
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[face.listening]))
        try:
            yield bridge
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def _run_bridge(fleet: Fleet, face: OpenSarkFace, connections: Connections) -> AsyncIterator[Bridge]:
    """Keep the fleet's queue and the lists alike while the block runs."""
    async with AsyncExitStack() as stack:
        if face.for_lists is None:
            bridge = Bridge(fleet, RedisQueues(face.options.redis), face.options.settings)
        else:
            lists = Lists(*face.for_lists.getsockname()[:2])
            bridge = Bridge(fleet, lists, face.options.settings)
            lists.allows, lists.lend, lists.record = bridge.allows, bridge.lend, bridge.take_result
            await stack.enter_async_context(served_lists(lists, face.for_lists, connections))
        stack.push_async_callback(bridge.queues.close)
        rounds = asyncio.create_task(bridge.run())
        rounds.add_done_callback(_tell)
        try:
            yield bridge
        finally:
            # Again and again: the Redis client may swallow one that comes while it gives up a connection.
            while not rounds.done():
                rounds.cancel()
                await asyncio.wait({rounds}, timeout=_CANCEL_AGAIN_S)


def _tell(rounds: asyncio.Task[None]) -> None:
    """A round that ended by itself is a fault of ours, and nobody waits for it."""
    if not rounds.cancelled() and (fault := rounds.exception()) is not None:
        _log.error("fault", exc_info=fault)


class _Server(uvicorn.Server):
    """Ends when the server beside it does, which hears the signals for both."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
