"""Read a request's body as JSON or as bytes, within its limit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Scope

from prony.model.base import Noun
from prony.server.problems import ClientGoneError, RequestError, invalid

N = TypeVar("N", bound=Noun)
JSON_LIMIT = 2**20
_JSON = re.compile(rb"\s*application/(?:[\w.-]+\+)?json\s*(?:;|$)", re.IGNORECASE)
# A NUL that was escaped, and not a backslash that was, before the letter u.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_LONGEST_LENGTH = 19
_HEADERS = "prony.headers"


def header(scope: Scope, name: bytes) -> bytes:
    """Return a header of the request, or nothing; the first, where there are several."""
    known: dict[bytes, bytes] | None = scope.get(_HEADERS)
    if known is None:
        known = scope[_HEADERS] = dict(reversed(scope["headers"]))
    return known.get(name, b"")


async def json_body(request: Request, noun: type[N], *, lenient: bool) -> N:
    """Return what the request brings. A person's mistakes are refused; what only a newer peer knows is passed over."""
    if not _JSON.match(header(request.scope, b"content-type")):
        raise RequestError(
            "the body must be JSON",
            status=415,
            code="unsupported_media_type",
            hint="send the header `Content-Type: application/json`",
        )
    raw = await _whole(request)
    if not lenient and b"\\u0000" in raw and _NUL.search(raw):
        raise RequestError("the body contains a NUL character", hint="remove it: text may not contain one")
    try:
        return noun.read_json(raw) if lenient else noun.model_validate_json(raw)
    except ValidationError as exc:
        raise invalid(exc, whole="the body") from None


async def _whole(request: Request) -> bytes:
    return b"".join([piece async for piece in octets(request, JSON_LIMIT)])


async def octets(request: Request, limit: int, *, ended: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    """Yield the body as it arrives; refuse it as soon as it is known to be too long. `ended` is set at its end."""
    if _declared_length(request.scope) > limit:
        raise _too_large(limit)
    count, more = 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        count += len(piece)
        if count > limit:
            raise _too_large(limit)
        if piece:
            yield piece
    if ended is not None:
        ended.set()


def require_length(scope: Scope) -> None:
    """Refuse a body of which nothing says where it ends."""
    if not header(scope, b"content-length") and not header(scope, b"transfer-encoding"):
        raise RequestError(
            "the length of the body is missing",
            status=411,
            code="length_required",
            hint="send Content-Length, or Transfer-Encoding: chunked",
        )


def _declared_length(scope: Scope) -> int:
    text = header(scope, b"content-length")
    if not text:
        return 0
    if not text.isdigit() or len(text) > _LONGEST_LENGTH:
        raise RequestError("Content-Length is not a number", status=400, code="malformed")
    return int(text)


def _too_large(limit: int) -> RequestError:
    return RequestError(
        f"the body is larger than {limit} bytes", status=413, code="too_large", hint="send less, or in smaller parts"
    )
