"""Start the server that a script needs, and check whether it is ready."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from prony.errors import CapacityError, SutError
from prony.kinds.script.schema import Readiness, ScriptServer
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services.ports import LOOPBACK, is_taken

_CONNECT_S = 0.9
_GRACE_S = 10.0


@dataclass
class ServerOfScript:
    """One server, as the part of the runner that starts services knows them. `made` says how it is started."""

    name: ClassVar[str] = "the server"
    driver: ClassVar[str] = ""
    Options: ClassVar[type[Any]] = ScriptServer

    made: Callable[[ServiceSite], Start]
    now: Callable[[], float] = time.monotonic
    _next_s: float | None = field(default=None, init=False)
    _good: int = field(default=0, init=False)
    _bad: int = field(default=0, init=False)
    _lacks: str = field(default="it was not asked yet", init=False)

    def available(self, options: ScriptServer) -> str | None:
        """Refuse ports that somebody has: what listens there would be taken for the server."""
        taken = next((port for port in options.ports if is_taken(port)), None)
        return None if taken is None else f"port {taken} is taken by another program"

    def installation(self) -> Installation | None:
        """Only the script says what it is."""

    def start(self, site: ServiceSite) -> Start:
        return self.made(site)

    def ready(self, endpoint: Endpoint, options: ScriptServer) -> str | None:
        """Ask when it is time to, and say what is lacking until enough good answers came in a row."""
        if options.readiness is None:
            return _listens(endpoint)
        probe = options.readiness
        if self._next_s is None:
            self._next_s = self.now() + (probe.initial_delay or 0) / 1e9
        if self.now() < self._next_s:
            return self._lacks
        self._next_s = self.now() + probe.period / 1e9
        lacks = _answers(endpoint, probe, options.ports[0])
        self._good, self._bad = (self._good + 1, 0) if lacks is None else (0, self._bad + 1)
        self._lacks = lacks or f"{self._good} of {probe.success_threshold} good answers came so far"
        if probe.failure_threshold is not None and self._bad >= probe.failure_threshold:
            raise SutError(
                f"the server was not ready after {self._bad} questions: {lacks}",
                hint="raise workload.server.readiness.failure_threshold, or leave it out",
                code="service_timeout",
            )
        return None if self._good >= probe.success_threshold else self._lacks

    def facts(self, endpoint: Endpoint, options: ScriptServer) -> Mapping[str, str]:  # noqa: ARG002 (the seam's own)
        return {}


def variables_of(server: ScriptServer) -> dict[str, str]:
    """Return how the script finds the server."""
    first, *others = server.ports
    found = {"INFERENCE_SERVER_HOST": LOOPBACK, "INFERENCE_SERVER_PORT": str(first)}
    return found | {f"INFERENCE_SERVER_PORT_{number}": str(port) for number, port in enumerate(others, start=1)}


def check_ports(server: ScriptServer) -> None:
    """Refuse before anything is started where a port is taken."""
    for port in server.ports:
        if is_taken(port):
            raise CapacityError(
                f"port {port} is taken by another program, and the server wants it",
                hint="end that program, or give the server other ports",
                code="server_port_taken",
            )


def started_as(
    command: list[str], server: ScriptServer, environment: Mapping[str, str], clear: Sequence[Sequence[str]] = ()
) -> Start:
    """Return the start of a server by a command."""
    endpoint = Endpoint(host=LOOPBACK, port=server.ports[0])
    return Start(command=command, endpoint=endpoint, environment=environment, grace_s=_GRACE_S, clear=clear)


def _listens(endpoint: Endpoint) -> str | None:
    try:
        socket.create_connection((endpoint.host, endpoint.port), timeout=_CONNECT_S).close()
    except OSError as exc:
        return f"nobody listens on port {endpoint.port} yet: {exc}"
    return None


def _answers(endpoint: Endpoint, probe: Readiness, first_port: int) -> str | None:
    """Ask the page once; None where its status is good, else what is wrong."""
    port = probe.port or first_port
    timeout_s = probe.timeout / 1e9
    if probe.scheme == "https":
        # It asks whether somebody is there, not who: the certificate of a server under test is its own.
        context = ssl._create_unverified_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            endpoint.host, port, timeout=timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(endpoint.host, port, timeout=timeout_s)
    try:
        connection.request("GET", probe.path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as exc:
        return f"{probe.path} does not answer: {exc or type(exc).__name__}"
    finally:
        connection.close()
    return None if 200 <= status < 400 else f"{probe.path} answers {status}"
