"""A server's URL in, agents out that speak its real protocol and run nothing: thousands of them in one process.

Connections are raw and stay open, so that what is measured is the server and not its clients. A result is a folder that
`prony exec` really made, under the name of the job that was leased.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tarfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

import httptools

from benchmarks.bench import exec_command, job, run, zoo_file
from prony.app.abilities import inspect_engines
from prony.dispatch.facts import facts_of
from prony.instruments.device import detect
from prony.model.agent import Capabilities
from prony.store.home import Home

_JSON = "application/json"
_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire(asyncio.Protocol):
    """One connection that stays open; one request at a time. `on_piece` sees a body as it arrives."""

    def __init__(self, host: str, on_piece: Callable[[bytes], None] | None = None) -> None:
        self._host = host
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._answer: asyncio.Future[Answer] | None = None
        self._on_piece = on_piece
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, url: str, on_piece: Callable[[bytes], None] | None = None) -> Self:
        place = urlsplit(url)
        host, port = place.hostname or "", place.port or 80
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(lambda: cls(place.netloc, on_piece), host, port)
        return wire

    async def ask(self, method: str, path: str, content: bytes = b"", kind: str = _JSON, extra: str = "") -> Answer:
        """Send a request; return its answer, whatever it is."""
        if self._transport is None:
            raise ConnectionError("the server closed the connection")
        head = (
            f"{method} /api/v1/{path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(content)}\r\n{extra}\r\n"
        )
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(head.encode() + content)
        return await self._answer

    async def good(self, method: str, path: str, body: object = None) -> Any:
        """Send JSON; return the JSON of an answer that is no refusal."""
        answer = await self.ask(method, path, b"" if body is None else json.dumps(body).encode())
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body[:500]!r}")
        return answer.json() if answer.body else None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # What the transport and the parser call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own is none by name

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if self._on_piece is not None:
            self._on_piece(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        body, self._pieces = b"".join(self._pieces), []
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._parser.get_status_code(), body))


class Results:
    """Parcels for any job, out of one result folder that a runner made."""

    def __init__(self, folder: Path) -> None:
        self._result = json.loads((folder / "result.json").read_text())
        fixed = sorted(path for path in folder.rglob("*") if path.is_file())
        self._fixed = b"".join(
            _member(path.relative_to(folder).as_posix(), path.read_bytes())
            for path in fixed
            if path.name not in ("job.json", "result.json")
        )

    @classmethod
    def made(cls, folder: Path) -> Self:
        """Run one tiny job for real."""
        plain = job(zoo_file("noop", folder), runs=20, warmup=2, repeats=1, check=False)
        run(exec_command([plain], folder), PRONY_HOME=str(folder / "runner"))
        (found,) = (folder / "out").rglob("result.json")
        return cls(found.parent)

    def parcel(self, leased: dict[str, Any]) -> bytes:
        """Return the tar of this job's result."""
        result = self._result | {"job_id": leased["id"], "experiment_id": leased["experiment_id"]}
        pieces = _member("job.json", json.dumps(leased).encode()) + _member("result.json", json.dumps(result).encode())
        return self._fixed + pieces + bytes(2 * _BLOCK)


def _member(name: str, content: bytes) -> bytes:
    about = tarfile.TarInfo(name)
    about.size = len(content)
    return about.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % _BLOCK)


def offer_of_this_machine(folder: Path) -> dict[str, Any]:
    """Return what a real agent here would say of itself, as JSON."""
    device, engines = detect(), tuple(inspect_engines(Home(folder / "offer").create()))
    policy = {"kinds": ("model",), "schemes": ("zoo",)}
    facts = facts_of(device, engines, labels={}, cached_models=(), policy=policy)
    said: dict[str, Any] = Capabilities(device=device, engines=engines, facts=facts).model_dump(mode="json")
    return said


Lease = dict[str, Any]


class Agent:
    """Enrols, leases, finishes; each one is a device of its own."""

    def __init__(self, wire: Wire, name: str, offer: dict[str, Any], results: Results) -> None:
        self.wire = wire
        self.name = name
        self.id = ""
        self._offer = offer
        self._results = results

    @classmethod
    async def enrolled(cls, url: str, name: str, offer: dict[str, Any], results: Results) -> Self:
        agent = cls(await Wire.open(url), name, offer, results)
        said = {"name": name, "device_key": name, "incarnation": "one", "capabilities": offer}
        agent.id = (await agent.wire.good("POST", "agents", said))["agent"]["id"]
        return agent

    async def lease(self, wait_s: float = 30.0) -> Lease | None:
        asked = {"agent_id": self.id, "incarnation": "one", "wait_s": wait_s}
        found: Lease | None = await self.wire.good("POST", "leases", asked)
        return found

    async def finish(self, lease: Lease, *, ask_next: bool = False) -> Lease | None:
        """Hand in the result of a job that was not run; return the next lease where there is one."""
        parcel = self._results.parcel(lease["job"])
        extra = f"Prony-Sha256: {hashlib.sha256(parcel).hexdigest()}\r\n"
        path = f"leases/{lease['id']}/result?next={str(ask_next).lower()}&wait_s=0"
        answer = await self.wire.ask("PUT", path, parcel, "application/x-tar", extra)
        said = answer.json()
        if answer.status != 200 or not said["accepted"]:
            raise RuntimeError(f"the result was not accepted: {answer.status} {answer.body[:500]!r}")
        following: Lease | None = said["lease"]
        return following

    async def heartbeat(self) -> None:
        await self.wire.good("POST", f"agents/{self.id}/heartbeat", {"incarnation": "one"})

    async def work(self, on_result: Callable[[Lease], None]) -> None:
        """Lease and finish until this is cancelled, as an agent does whose jobs take no time."""
        lease: Lease | None = None
        while True:
            lease = lease or await self.lease()
            if lease is not None:
                done, lease = lease, await self.finish(lease, ask_next=True)
                on_result(done)


async def gathered(works: list[Awaitable[Agent]], together: int = 50) -> list[Agent]:
    """Enrol many, some at a time."""
    limit = asyncio.Semaphore(together)

    async def one(work: Awaitable[Agent]) -> Agent:
        async with limit:
            return await work

    return list(await asyncio.gather(*map(one, works)))
