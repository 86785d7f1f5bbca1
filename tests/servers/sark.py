"""Serve SARK's API over a real fleet in a thread, with the calls of a worker."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from prony.app.fleet.context import FleetSettings
from prony.app.fleet.fleet import Fleet
from prony.compat.sark.face.bridge import Bridge
from prony.compat.sark.face.server import SarkOptions, opened_face, sark_served
from prony.compat.sark.face.settings import FaceSettings
from prony.store.home import Home

_LONGEST_S = 120.0
CPU = "CPU (ONNX)"
MODEL = "https://example.org/models/tiny.onnx"
# What a real Dumont sends, word for word.
DUMONT: dict[str, Any] = {
    "device_name": "vm",
    "ip_address": "localhost",
    "capabilities": [CPU],
    "device_info": {"DeviceName": "vm", "Soc": "", "Ram": "23", "DeviceOs": "Linux", "DeviceOsVersion": "#1 SMP @0"},
}
FIGURES = ("Median", "Min", "Max", "Average", "StdDev", "First")


@dataclass
class Sark:
    """`http` speaks to /api, `lists` to whatever is the Redis."""

    http: httpx.Client
    lists: redis.Redis
    lists_url: str
    fleet: Fleet
    bridge: Bridge
    loop: asyncio.AbstractEventLoop

    def get(self, path: str) -> Any:
        return self.http.get(f"/api/{path}").raise_for_status().json()

    def post(self, path: str, body: Any = None) -> httpx.Response:
        return self.http.post(f"/api/{path}", content=b"" if body is None else json.dumps(body))

    def put(self, path: str, body: Any = None) -> httpx.Response:
        return self.http.put(f"/api/{path}", content=b"" if body is None else json.dumps(body))

    def register(self, name: str = "vm", **changes: Any) -> str:
        info = DUMONT["device_info"] | {"DeviceName": name}
        body = DUMONT | {"device_name": name, "device_info": info} | changes
        return str(self.post("register", body).raise_for_status().json()["worker_id"])

    def campaign(self, *jobs: dict[str, Any]) -> str:
        body = {"model_url": MODEL, "jobs": list(jobs or ({"compute_unit": CPU},))}
        return str(self.post("campaigns", body).raise_for_status().json()["campaign_id"])

    def pop(self, worker_id: str, *queues: str) -> str | None:
        """Look for a job as a Dumont does: in its own list first."""
        for queue in (f"jobs:{worker_id}", *(queues or ("jobs:capability:cpu_onnx",))):
            if (found := self.lists.rpop(queue)) is not None:
                return found.decode() if isinstance(found, bytes) else str(found)
        return None

    def steal(self) -> str | None:
        """Take a job as somebody of whom nothing is known."""
        with connect_redis(self.lists_url, decode_responses=True) as stranger:
            found = stranger.rpop("jobs:capability:cpu_onnx")
            return None if found is None else str(found)

    def begin(self, worker_id: str) -> str:
        """Take a job and say so, as a Dumont does."""
        job_id = self.until(lambda: self.pop(worker_id))
        assert self.http.get(f"/api/jobs/{job_id}").status_code == 200
        assert self.put(f"workers/{worker_id}/status", {"status": "busy"}).status_code == 200
        return str(job_id)

    def report(self, job_id: str, worker_id: str, **changes: Any) -> None:
        self.put(f"workers/{worker_id}/status", {"status": "active"})
        self.lists.lpush("results", json.dumps(complete(job_id, worker_id) | changes))

    def serve_one(self, worker_id: str, **changes: Any) -> str:
        job_id = self.begin(worker_id)
        self.report(job_id, worker_id, **changes)
        return job_id

    def until(self, look: Callable[[], Any]) -> Any:
        """Look again and again, for a while at most, until there is something."""
        deadline = time.monotonic() + _LONGEST_S
        while not (found := look()):
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.05)
        return found

    def ended(self, campaign_id: str) -> Any:
        def look() -> Any:
            found = self.get(f"campaigns/{campaign_id}")
            return found if found["status"] == "completed" else None

        return self.until(look)


def connect_redis(url: str, *, decode_responses: bool = False) -> redis.Redis:
    """Return a client that waits for a busy server; by itself it gives up after five seconds."""
    return redis.Redis.from_url(
        url,
        decode_responses=decode_responses,
        socket_timeout=60,
        socket_connect_timeout=60,
        retry=Retry(NoBackoff(), 3),
    )


def complete(job_id: str, worker_id: str) -> dict[str, Any]:
    """Return what a Dumont reports of a job that went well."""
    device: dict[str, Any] = DUMONT["device_info"] | {"DeviceYear": "", "DiscreteGpu": "", "VRam": ""}
    figures = {f"{part}Ms{one}": 1.25 for part in ("Load", "Inference") for one in FIGURES} | {"LoadMsStdDev": 0.0}
    peaks = {"PeakLoadRamUsage": 66.5, "PeakInferenceRamUsage": 70.25}
    shares = {"AverageLoadCpuPercent": 12.0, "AverageInferenceCpuPercent": 99.0}
    ids = {"job_id": job_id, "campaign_id": job_id.rpartition("-job-")[0], "worker_id": worker_id}
    file = {"FileName": "tiny.onnx", "FileSize": 2707, "ComputeUnits": CPU}
    return ids | {"status": "Complete"} | file | device | figures | peaks | shares


@contextmanager
def served_sark(
    folder: Path, *, redis_url: str = "", database: str = "", ttl_s: float = 300.0, **settings: float
) -> Iterator[Sark]:
    """Serve a home until the block ends; without a Redis's URL the lists are the server's own.

    A worker has 10 s to say that it took a job, and as long to report it: a busy machine needs some of them. What waits
    for that time to pass asks for less."""
    kept = FleetSettings(ttl_s=ttl_s, sweep_s=0.1, reconcile_s=0.5)
    fleet = Fleet.open(Home(folder).create(), url=database, settings=kept)
    quick = FaceSettings(**({"claim_s": 10.0, "report_s": 10.0, "poll_s": 0.02, "look_s": 0.05} | settings))
    ready, ending = threading.Event(), threading.Event()
    found: list[tuple[asyncio.AbstractEventLoop, Bridge]] = []
    options = SarkOptions(port=0, redis=redis_url, lists_port=0, settings=quick)
    with opened_face(options) as face:

        async def run() -> None:
            await fleet.start()
            async with sark_served(fleet, face) as bridge:
                found.append((asyncio.get_running_loop(), bridge))
                ready.set()
                await asyncio.to_thread(ending.wait)
            await fleet.stop()

        thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        thread.start()
        assert ready.wait(120)
        lists = connect_redis(face.lists_url)
        try:
            with httpx.Client(base_url=face.url, timeout=60, trust_env=False) as http:
                yield Sark(http, lists, face.lists_url, fleet, found[0][1], found[0][0])
        finally:
            lists.close()
            ending.set()
            thread.join(120)
            assert not thread.is_alive()
