"""Check that this device can run an agent and reach its server."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from prony.agent.agent import AgentOwner
from prony.agent.identity import Slot
from prony.agent.server_client import Refused, ServerClient, server_date
from prony.agent.spool import LEAST_FREE_BYTES
from prony.app.abilities import inspect_engines
from prony.errors import PronyError, TransportError

_ASKED = 5
_MOST_OFFSET_S = 5.0


@dataclass(frozen=True)
class AgentCheck:
    name: str
    ok: bool
    detail: str
    hint: str = ""


@dataclass(frozen=True)
class ServerConnection:
    """How a server was reached. `offset_s` is how far its clock is ahead of ours, to within `uncertainty_s`."""

    server: str
    status: int
    version: str
    round_trip_ms: float
    offset_s: float | None
    uncertainty_s: float | None

    @property
    def is_healthy(self) -> bool:
        return self.status == 200


def validate(owner: AgentOwner) -> list[AgentCheck]:
    """Look at everything that an agent needs here."""
    here = [*_place(owner), _interpreter(), *_engines(owner)]
    if owner.settings.other_server is not None:
        return [*here, *owner.settings.other_server.check()]
    return [*here, *asyncio.run(_server(owner))]


def connection(owner: AgentOwner) -> ServerConnection:
    """Ask the server for its health a few times; no lease is taken."""
    return asyncio.run(_connection(owner.server_of(_slot(owner))))


def _place(owner: AgentOwner) -> Iterator[AgentCheck]:
    try:
        root = owner.home.create().root
    except PronyError as exc:
        yield AgentCheck("home", False, exc.message, exc.hint)
        return
    yield AgentCheck("home", True, str(root))
    free = shutil.disk_usage(root).free
    least = owner.settings.least_free_bytes or LEAST_FREE_BYTES
    yield AgentCheck("disk", free >= least, f"{free / 2**30:.1f} GiB free", f"{least / 2**20:.0f} MiB are needed")


def _interpreter() -> AgentCheck:
    """Start what every job is started by."""
    command = [sys.executable, "-P", "-m", "prony", "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return AgentCheck("interpreter", False, f"{sys.executable}: {exc}", "install Prony again")
    said = (done.stdout or done.stderr).strip().splitlines()
    version = ".".join(map(str, sys.version_info[:3]))
    detail = f"{sys.executable} (Python {version}): {said[-1] if said else f'exit code {done.returncode}'}"
    return AgentCheck("interpreter", done.returncode == 0, detail, "install Prony again")


def _engines(owner: AgentOwner) -> Iterator[AgentCheck]:
    reports = [report for report in inspect_engines(owner.home) if report.name != "null"]
    ready = [f"{report.name} {report.version}" for report in reports if report.state == "ready"]
    yield AgentCheck(
        "engines", bool(ready), ", ".join(ready) or "none is ready", "run prony doctor to see what is missing"
    )
    for report in reports:
        if report.state == "broken":
            yield AgentCheck(f"engine {report.name}", False, report.reason, report.hint)


def _slot(owner: AgentOwner) -> Slot:
    """Return the slot of this home's first agent, or of the named one, without holding it."""
    name = owner.settings.name or "1"
    return Slot(name, owner.home.root / "agents" / name)


async def _server(owner: AgentOwner) -> list[AgentCheck]:
    try:
        server = owner.server_of(_slot(owner))
        found = await _connection(server)
    except PronyError as exc:
        return [AgentCheck("server", False, exc.message, exc.hint)]
    checks = [
        AgentCheck(
            "server",
            found.is_healthy,
            _describe_connection(found),
            "check prony server; GET /api/v1/health shows which part fails",
        )
    ]
    if found.offset_s is not None and abs(found.offset_s) > _MOST_OFFSET_S:
        effect = "leases are not affected, but times in logs will not match"
        detail = f"it differs from the server's by {found.offset_s:+.1f} s: {effect}"
        checks.append(AgentCheck("clock", True, detail))
    return [*checks, await _token(owner, server)]


def _describe_connection(found: ServerConnection) -> str:
    health = "healthy" if found.is_healthy else f"answered {found.status}"
    return f"{found.server}: {health}, Prony {found.version or 'of unknown version'}, {found.round_trip_ms:.1f} ms away"


async def _token(owner: AgentOwner, server: str) -> AgentCheck:
    """See whether the server knows this agent's token, or the one that it is to enrol with."""
    known = _slot(owner).identity()
    stored = known.token if known and known.server == server else None
    agent_id = known.id if known and known.id else "none"
    async with ServerClient(server, stored or owner.token) as link:
        try:
            if link.token is None:
                link.token = await asyncio.to_thread(link.find_owner_token, owner.home)
            await link.agent(agent_id)
        except Refused as exc:
            # Whoever is known but may not look, or looks for an agent that is not there, is known all the same.
            if exc.status in (401, 429):
                return AgentCheck("token", False, exc.error.message, exc.error.hint)
        except TransportError as exc:
            return AgentCheck("token", False, exc.message, exc.hint)
        return AgentCheck("token", True, _token_told(link.token, stored, owner.token))


def _token_told(token: str | None, stored: str | None, given: str | None) -> str:
    if token is None:
        return "none, and the server needs none"
    if stored:
        return "the agent's own"
    return "given, for enrolment" if given else "the owner's, for enrolment: the server has the same home"


async def _connection(server: str) -> ServerConnection:
    async with ServerClient(server) as link:
        trips = []
        for _ in range(_ASKED):
            begin_ns = time.perf_counter_ns()
            response = await link.health()
            trips.append((time.perf_counter_ns() - begin_ns) / 1e6)
        now_s, date_s = time.time(), server_date(response)
    trip_ms = statistics.median(trips[1:])  # the first one opened the connection
    try:
        body = response.json()
        version = str(body.get("version", "")) if isinstance(body, dict) else ""
    except ValueError:
        raise TransportError(
            f"{server} answered, but it is not a Prony server", hint="check the address: `prony server` prints it"
        ) from None
    # The head tells whole seconds, cut off, and servers write it anew once a second: true is up to two seconds later.
    offset_s = None if date_s is None else date_s + 1.0 - (now_s - trip_ms / 2000)
    return ServerConnection(
        server=server,
        status=response.status_code,
        version=version,
        round_trip_ms=trip_ms,
        offset_s=None if offset_s is None else round(offset_s, 1),
        uncertainty_s=None if offset_s is None else round(1.0 + trip_ms / 2000, 1),
    )
