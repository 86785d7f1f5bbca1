"""Ask a service over plain HTTP, with one connection per question and no proxy.

`ready` is called hundreds of times while a server starts, so that this is the standard library's plain client.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prony.errors import SutError
from prony.ports.driver import Endpoint

READY_S = 0.9
# A server that is ready is asked for its settings once, and what it does not tell is missing from the result.
SETTINGS_S = 20.0


class SilentError(SutError):
    """Nobody answered, or not in HTTP; the message says what happened."""


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    body: bytes
    headers: Mapping[str, str]

    def document(self) -> Any:
        """Return the body as JSON, or None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def ask(
    endpoint: Endpoint,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float = READY_S,
) -> HttpAnswer:
    """Ask once, on a connection of its own."""
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=timeout_s)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        reply = connection.getresponse()
        told = {name.lower(): value for name, value in reply.getheaders()}
        return HttpAnswer(reply.status, reply.read(), told)
    except (OSError, http.client.HTTPException) as exc:
        raise SilentError(f"{path} does not answer: {exc or type(exc).__name__}") from exc
    finally:
        connection.close()


def failure_at(endpoint: Endpoint, path: str) -> str | None:
    """Return None where the path answers with success, else what it said instead."""
    try:
        answer = ask(endpoint, path)
    except SilentError as exc:
        return str(exc)
    if answer.status // 100 == 2:
        return None
    return f"{path} answered {answer.status} {answer.body[:200].decode(errors='replace')}".strip()


def find_json(endpoint: Endpoint, path: str, headers: Mapping[str, str] | None = None) -> Any:
    """Return the JSON document at a path, or None where there is none."""
    try:
        answer = ask(endpoint, path, headers=headers, timeout_s=SETTINGS_S)
    except SilentError:
        return None
    return answer.document() if answer.status == 200 else None


def pick_values(document: Any, *names: str) -> dict[str, str]:
    """Return some values of a JSON object as text, those that it has; `a.b` is b within a."""
    found = {}
    for name in names:
        value = document
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[name] = value if isinstance(value, str) else json.dumps(value)
    return found
