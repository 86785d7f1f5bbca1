"""A fleet and options in, SARK's face served beside the server's own until the block ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import uvicorn

from prony.app.sark import Bridge, Orchestrator, SarkSettings
from prony.errors import AccessError, InputError
from prony.server.protocol import Protocol
from prony.server.sark.app import create_sark_app
from prony.server.sark.redis import RedisQueues

if TYPE_CHECKING:
    from prony.app.fleet import Fleet
    from prony.app.sark.queues import Queues

_KEEP_ALIVE_S = 75
_GRACE_S = 5


@dataclass(frozen=True)
class SarkOptions:
    """`is_for_anyone`: somebody has said that whoever reaches the port may do everything."""

    host: str = "127.0.0.1"
    port: int = 5000
    redis: str = ""
    is_for_anyone: bool = False
    settings: SarkSettings = field(default_factory=SarkSettings)


def check_reach(options: SarkOptions, *, is_local: bool) -> None:
    """Refuse to let others in: whoever reaches this face may submit, delete and report whatever they like."""
    if not is_local and not options.is_for_anyone:
        raise AccessError(
            f"SARK's API has no tokens, and {options.host} can be reached from outside of this machine: anyone could "
            "delete campaigns, run models on workers and report invented results",
            hint="use --sark-bind 127.0.0.1 with a tunnel, or say --sark-open-to-anyone on a network that you trust",
            code="sark_unprotected",
        )


@asynccontextmanager
async def sark_served(
    fleet: Fleet, options: SarkOptions, listening: socket.socket, *, is_local: bool
) -> AsyncIterator[None]:
    """Serve a fleet that has started; requests are taken from the first line of the block on."""
    queues = _queues(options)
    bridge = Bridge(fleet, queues, options.settings)
    server = _Server(
        uvicorn.Config(
            create_sark_app(Orchestrator(bridge), only_local=is_local),
            http=Protocol, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S, timeout_graceful_shutdown=_GRACE_S,
        )
    )  # fmt: skip
    tasks = [asyncio.create_task(server.serve(sockets=[listening])), asyncio.create_task(bridge.run())]
    try:
        yield
    finally:
        server.should_exit = True
        tasks[1].cancel()
        with suppress(asyncio.CancelledError):
            await tasks[1]
        await tasks[0]
        await queues.close()


def _queues(options: SarkOptions) -> Queues:
    if not options.redis:
        raise InputError("where is Redis?", hint="as in --redis redis://127.0.0.1:6379/0", code="no_redis")
    return RedisQueues(options.redis)


class _Server(uvicorn.Server):
    """Ends when the server beside it does, which hears the signals for both."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
