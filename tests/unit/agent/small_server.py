"""Real HTTP server with the agent's part of the API, for tests with faults."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prony.model.agent import Agent, AgentState, Enrolled, Enrolment, Heartbeat, HeartbeatAnswer
from prony.model.lease import FinishAnswer, Lease, LeaseRequest, Progress, ProgressAnswer, UploadState
from prony.model.problem import Problem

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# What may happen to a request: it never arrives, its answer never does, or it is answered with this status.
DROP, CUT = "drop", "cut"
Fault = str | int


class SmallServer(ThreadingHTTPServer):
    """Holds in memory what a server would; tests read it. `faults` are consumed, one a request of that operation."""

    daemon_threads = True
    # A server that is started again must get its port back.
    allow_reuse_address = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.calls: list[str] = []
        self.tokens: list[str | None] = []
        self.leases: list[Lease] = []
        self.lent: dict[str, Lease] = {}
        self.uploads: dict[str, bytes] = defaultdict(bytes)
        self.results: dict[str, bytes] = {}
        self.enrolments: list[Enrolment] = []
        self.requests: list[LeaseRequest] = []
        self.beats: list[Heartbeat] = []
        self.progress: dict[str, list[Progress]] = defaultdict(list)
        self.returned: dict[str, str] = {}
        self.cancelled: set[str] = set()
        self.drained = False
        self.own_token: str | None = None
        self.codes: dict[int, str] = {}
        self.ttl_s = 6.0
        self.changed = threading.Condition()
        self.connections: set[socket.socket] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def die(self) -> None:
        """End as a killed process does: nobody listens, and every connection is cut."""
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what many tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallServer

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that they have there

    def _answer(self) -> None:
        split = urlsplit(self.path)
        parts = split.path.removeprefix("/api/v1/").split("/")
        query = {key: values[0] for key, values in parse_qs(split.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        operation = f"{self.command} {parts[0]}" + (f"/{parts[2]}" if len(parts) > 2 else "")
        fault = self._fault(operation)
        if fault == DROP:
            self._hang_up()
            return
        if isinstance(fault, int):
            self._problem(fault)
            return
        with self.server.changed:
            status, noun = self._act(operation, parts, query, body)
            self.server.changed.notify_all()
        if fault == CUT:
            self._hang_up()
        elif status >= 400:
            self._problem(status)
        else:
            self._send(status, b"" if noun is None else noun.model_dump_json().encode())

    def _fault(self, operation: str) -> Fault | None:
        self.server.calls.append(operation)
        self.server.tokens.append((self.headers.get("Authorization") or "").removeprefix("Bearer ") or None)
        waiting = self.server.faults[operation]
        return waiting.pop(0) if waiting else None

    def _act(self, operation: str, parts: list[str], query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if parts[0] == "agents":
            return self._hear(operation, body)
        return self._lend(operation, parts, query, body)

    def _hear(self, operation: str, body: bytes) -> tuple[int, Any]:
        server = self.server
        match operation:
            case "POST agents":
                server.enrolments.append(Enrolment.read_json(body))
                return 201, Enrolled(agent=_agent(server.enrolments[-1]), token=server.own_token, ttl_s=server.ttl_s)
            case "POST agents/heartbeat":
                server.beats.append(Heartbeat.read_json(body))
                stop = tuple(one for one in server.beats[-1].leases if one in server.cancelled)
                return 200, HeartbeatAnswer(cancel=stop, drain=server.drained)
            case "POST agents/drain":
                server.drained = True
                return 200, _agent(server.enrolments[-1])
        return 200, _agent(server.enrolments[-1])

    def _lend(self, operation: str, parts: list[str], query: dict[str, str], body: bytes) -> tuple[int, Any]:
        server = self.server
        match operation:
            case "POST leases":
                return self._wait_for_lease(LeaseRequest.read_json(body))
            case "DELETE leases":
                server.returned[parts[1]] = query.get("reason", "")
                server.lent.pop(parts[1], None)
                return 204, None
            case "POST leases/progress":
                server.progress[parts[1]].append(Progress.read_json(body))
                return 200, ProgressAnswer(cancel=parts[1] in server.cancelled)
        return self._take(operation, parts, query, body)

    def _take(self, operation: str, parts: list[str], query: dict[str, str], body: bytes) -> tuple[int, Any]:
        server = self.server
        lease_id = parts[1]
        match operation:
            case "GET leases/upload":
                return 200, UploadState(offset=len(server.uploads[lease_id]))
            case "PATCH leases/upload":
                if int(query["offset"]) != len(server.uploads[lease_id]):
                    return 409, None
                server.uploads[lease_id] += body
                return 200, UploadState(offset=len(server.uploads[lease_id]))
            case "PUT leases/result":
                content = body or server.uploads.pop(lease_id, b"")
                if hashlib.sha256(content).hexdigest() != self.headers.get("Prony-Sha256"):
                    return 502, None
                accepted = lease_id not in server.results
                server.results[lease_id] = content
                server.lent.pop(lease_id, None)
                follows = self._first() if query.get("next") == "true" else None
                return 200, FinishAnswer(accepted=accepted, lease=follows)
        return 404, None

    def _wait_for_lease(self, request: LeaseRequest) -> tuple[int, Any]:
        """Hold the request until there is a lease, or a little while: no test waits for patience to end."""
        server = self.server
        server.requests.append(request)
        unheard = [lease for lease in server.lent.values() if lease.id not in request.holding]
        if unheard:
            return 200, unheard[0]
        if not server.leases and request.wait_s:
            server.changed.wait(0.5)
        lease = self._first() if not server.lent else None
        return (200, lease) if lease else (204, None)

    def _first(self) -> Lease | None:
        if not self.server.leases or self.server.drained:
            return None
        lease = self.server.leases.pop(0)
        self.server.lent[lease.id] = lease
        return lease

    def _problem(self, status: int) -> None:
        code = self.server.codes.get(status, {404: "not_found", 409: "conflict"}.get(status, "error"))
        problem = Problem(type=f"urn:prony:{code}", title="no", status=status, code=code, detail="refused on order")
        self._send(status, problem.model_dump_json().encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it has there
        """Say nothing."""


def _agent(enrolment: Enrolment) -> Agent:
    return Agent(
        id=enrolment.id or "given-1",
        name=enrolment.name,
        state=AgentState.ACTIVE,
        device_key=enrolment.device_key,
        incarnation=enrolment.incarnation,
        created_at=NOW,
        seen_at=NOW,
    )


@contextmanager
def small_server(port: int = 0) -> Iterator[SmallServer]:
    server = SmallServer(port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.die()
        thread.join()


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return the lines of a JSON log."""
    return [json.loads(line) for line in text.splitlines()]
