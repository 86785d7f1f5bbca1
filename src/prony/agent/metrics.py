"""Count the agent's metrics and serve them as Prometheus text over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from prony.errors import StoreError

PREFIX = "prony_agent_"
# name -> (type, what it is)
KNOWN: dict[str, tuple[str, str]] = {
    "state": ("gauge", "1 for the current `state` of the agent"),
    "connected": ("gauge", "1 while the server answers"),
    "jobs_total": ("counter", "jobs that ended here, by the `state` of their result"),
    "job_seconds_total": ("counter", "time spent in runners"),
    "job_running_seconds": ("gauge", "running time of the current job"),
    "jobs_placed": ("gauge", "jobs of a stand-in agent that are at its target"),
    "leases_returned_total": ("counter", "jobs returned without a result"),
    "spool_results": ("gauge", "unsent results on this disk"),
    "spool_bytes": ("gauge", "size of the unsent results on this disk"),
    "upload_retries_total": ("counter", "failed attempts to upload a result"),
    "results_refused_total": ("counter", "results that the server refused for good, by `code`"),
    "unreachable_total": ("counter", "calls that the server did not answer"),
}
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE_S = 10.0
_MOST_HEADERS = 100


class AgentMetrics:
    def __init__(self) -> None:
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def count(self, name: str, by: float = 1.0, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        self._values[key] = self._values.get(key, 0.0) + by

    def set(self, name: str, value: float, **labels: str) -> None:
        self._values[name, tuple(sorted(labels.items()))] = value

    def text(self) -> str:
        lines = []
        for name, (kind, meaning) in KNOWN.items():
            lines += [f"# HELP {PREFIX}{name} {meaning}", f"# TYPE {PREFIX}{name} {kind}"]
            found = [(labels, value) for (known, labels), value in self._values.items() if known == name]
            lines += [f"{PREFIX}{name}{_labels(labels)} {value:.12g}" for labels, value in sorted(found)]
        return "\n".join(lines) + "\n"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escape(value)}"' for key, value in labels) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@asynccontextmanager
async def serve_metrics(metrics: AgentMetrics, host: str, port: int) -> AsyncIterator[int]:
    """Answer `GET /metrics` while the block runs; the block is told the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_PATIENCE_S):
                writer.write(_response(await _request(reader), metrics))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port)
    except OSError as exc:
        hint = "choose another --metrics-port, or a --metrics-host that is an address of this machine"
        raise StoreError(f"cannot listen on {host}:{port}: {exc.strerror}", hint=hint, code="port_taken") from exc
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _request(reader: asyncio.StreamReader) -> str:
    """Return the first line of a request, with its headers read and left."""
    first = (await reader.readline()).decode("latin-1").strip()
    for _ in range(_MOST_HEADERS):
        if (await reader.readline()).strip() == b"":
            break
    return first


def _response(request: str, metrics: AgentMetrics) -> bytes:
    method, _, rest = request.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if method not in ("GET", "HEAD"):
        status, body, kind = "405 Method Not Allowed", b"", "text/plain"
    elif path != "/metrics":
        status, body, kind = "404 Not Found", b"the metrics are at /metrics\n", "text/plain"
    else:
        status, body, kind = "200 OK", metrics.text().encode(), _TYPE
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if method == "HEAD" else body)
