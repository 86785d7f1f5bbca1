"""Build HTTP requests for an endpoint, and ask it for JSON and its HTTP version before a load."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from prony.errors import InputError, TransportError
from prony.load.http import request_bytes, target_of
from prony.load.http2 import request_frames
from prony.load.tls import context_of
from prony.plugins.drivers.http.session2 import Http2Session
from prony.ports.driver import Endpoint

if TYPE_CHECKING:
    import httpx

_PATIENCE_S = 10.0


HttpVersion = Literal[1, 2]
HTTP_HELP = "the version of HTTP; 2 where the server needs it: one request at a time on each connection, as with 1"
_WIRES = {1: "prony.load.http:HttpWire", 2: "prony.load.http2:Http2Wire"}


def wire_of(version: HttpVersion) -> str:
    """Return the wire that frames replies of a version of HTTP."""
    return _WIRES[version]


def check_version(endpoint: Endpoint, version: HttpVersion) -> None:
    """See that the server speaks it: every one speaks 1, and of 2 a TransportError says that it does not."""
    if version == 2:
        Http2Session(endpoint).__exit__(None, None, None)


def ask_json(endpoint: Endpoint, path: str, headers: Mapping[str, str], version: HttpVersion = 1) -> Any:
    """GET a page of JSON; no proxy is asked."""
    where = f"{endpoint.path or address(endpoint)}{endpoint.base}{path}"
    try:
        status, body = _got(endpoint, path, headers, version, where)
        if status >= 400:
            raise TransportError(f"{where} answered {status}: {body[:200].decode(errors='replace')}", code="bad_status")
        return json.loads(body)
    except ValueError as exc:
        raise TransportError(f"{where} did not answer in JSON", hint="does this server speak this protocol?") from exc


def _got(
    endpoint: Endpoint, path: str, headers: Mapping[str, str], version: HttpVersion, where: str
) -> tuple[int, bytes]:
    if version == 2:
        with Http2Session(endpoint) as session:
            return session.get(path, headers)
    import httpx

    try:
        with httpx.Client(transport=transport_to(endpoint), trust_env=False, timeout=_PATIENCE_S) as client:
            answer = client.get(f"{address(endpoint)}{target_of(endpoint, path)}", headers=dict(headers))
    except httpx.HTTPError as exc:
        raise TransportError(f"{where} cannot be asked: {exc}", hint="does the server run there?") from exc
    return answer.status_code, answer.content


def transport_to(endpoint: Endpoint) -> httpx.HTTPTransport:
    """Return how httpx connects as the load does: the same certificates are trusted, and no proxy is asked."""
    import httpx

    verify = context_of(endpoint) if endpoint.tls else False
    return httpx.HTTPTransport(verify=verify, trust_env=False, uds=endpoint.path or None)


def address(endpoint: Endpoint) -> str:
    """Return scheme, host and port as a URL begins."""
    if endpoint.path:
        return "http://localhost"
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{'https' if endpoint.tls else 'http'}://{host}:{endpoint.port}"


def whose(endpoint: Endpoint, variable: str | None) -> dict[str, str]:
    """Return the header that says who asks: the key that the named environment variable holds, or the URL's user."""
    if variable is None:
        pair = base64.b64encode(f"{endpoint.user}:{endpoint.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"} if endpoint.user else {}
    key = os.environ.get(variable)
    if not key:
        raise InputError(
            f"the environment variable {variable} is not set",
            hint="export it where the load runs, or leave api_key_env out",
        )
    return {"Authorization": f"Bearer {key}"}


def request_to(
    endpoint: Endpoint, method: str, path: str, headers: Mapping[str, str], body: bytes, version: HttpVersion = 1
) -> bytes:
    """Return the bytes of a request."""
    try:
        made = request_bytes if version == 1 else request_frames
        return made(method, path, endpoint, headers, body)
    except ValueError as exc:
        raise InputError(f"{method} {path} cannot be written as a request: {exc}", hint="look at its headers") from exc


def only_model(names: list[str], where: str) -> str:
    """Return the one model that a server offers."""
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"{where} offers no model", hint="load one, or name it: options.model")
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise InputError(f"{where} offers several models", hint=f"name one in options.model: {listed}")
