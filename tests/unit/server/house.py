"""Serve a real fleet over HTTP in a thread, with a client, for server tests."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from prony.app.fleet.context import FleetSettings
from prony.app.fleet.fleet import Fleet
from prony.server.app import create_app
from prony.server.forwarded import Network
from prony.server.listening import listening_at
from prony.server.protocol import count_connections, protocol_for
from prony.store.home import Home

RECIPE = (
    'name: small\nworkload: {kind: model, model: "zoo:noop", engine: "null"}\n'
    "measure: {runs: 5, repeats: 1, isolation: fork}\n"
)
# What a device tells that could run the recipe above.
FACTS = {"kinds": "model", "schemes": "zoo", "engine": "null", "engine.null.unit": "cpu"}


@dataclass
class House:
    """What a test may touch: the objects within, and the way in from outside."""

    fleet: Fleet
    app: FastAPI
    url: str
    client: httpx.Client
    loop: asyncio.AbstractEventLoop

    def submit(self, text: str = RECIPE, **headers: str) -> httpx.Response:
        return self.client.post("/api/v1/experiments", json={"text": text}, headers=headers)

    def enrol(self, name: str = "a", **changes: Any) -> str:
        response = self.client.post("/api/v1/agents", json=enrolment(name, **changes))
        return str(response.raise_for_status().json()["agent"]["id"])

    def lease(self, agent_id: str, wait_s: float = 0, **changes: Any) -> httpx.Response:
        asked = {"agent_id": agent_id, "incarnation": "i1", "wait_s": wait_s} | changes
        return self.client.post("/api/v1/leases", json=asked)

    def experiment(self, text: str = RECIPE) -> str:
        return str(self.submit(text).raise_for_status().json()["experiment"]["id"])


@contextmanager
def served(
    folder: Path, *, is_open: bool = True, owner_token: str = "", proxies: Sequence[Network] = (), **settings: Any
) -> Iterator[House]:
    """Serve a home until the block ends."""
    fleet = Fleet.open(Home(folder).create(), settings=FleetSettings(asks_tokens=not is_open, **settings))
    app = create_app(fleet, open_to_all=is_open, owner_token=owner_token, proxies=proxies)
    config = uvicorn.Config(app, http=protocol_for(count_connections()), ws="none", lifespan="off", log_config=None,
                            access_log=False, server_header=False, proxy_headers=False,
                            timeout_graceful_shutdown=5)  # fmt: skip
    server = uvicorn.Server(config)
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run(listening: socket.socket) -> None:
        loops.append(asyncio.get_running_loop())
        await fleet.start()
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        ready.set()
        await serving
        await fleet.stop()

    with listening_at("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=lambda: asyncio.run(run(listening)), daemon=True)
        thread.start()
        assert ready.wait(120)
        try:
            with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
                yield House(fleet, app, url, client, loops[0])
        finally:
            loops[0].call_soon_threadsafe(app.state.waits.close)
            server.should_exit = True
            thread.join(120)
            assert not thread.is_alive()


def enrolment(name: str = "a", **changes: Any) -> dict[str, Any]:
    """Return how an agent introduces itself that fits the recipe."""
    return {
        "name": name,
        "device_key": f"device-{name}",
        "incarnation": "i1",
        "capabilities": {"facts": FACTS},
    } | changes
