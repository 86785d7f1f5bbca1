"""What every client of the API shares, whatever sends its bytes: addresses, headers, answers that are errors, pauses.

Nothing here opens a connection, so that the agent can use it with a transport of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote, urlsplit

from pydantic import TypeAdapter, ValidationError

from prony import errors
from prony.errors import AccessError, InputError, PronyError, RecipeError, StoreError, TransportError
from prony.model.base import Noun
from prony.model.problem import Problem
from prony.model.validation_words import describe_invalid
from prony.ports.tracing import TRACEPARENT, current_trace

N = TypeVar("N", bound=Noun)

API = "/api/v1"
IDEMPOTENCY_KEY = "Idempotency-Key"
NEXT_OFFSET = "Prony-Next-Offset"
ENDED = "Prony-Ended"
SHA256 = "Prony-Sha256"
# The server, or what stands before it, is on its way up or down: the same request may succeed soon.
PASSING = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})

_LONGEST_QUOTE = 200
_KINDS = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PronyError)
} | {"unauthorized": AccessError, "too_many": AccessError, "store_busy": StoreError, "newer_store": StoreError}
# Of a code that only a newer server knows, the status tells whose move it is.
_BY_STATUS: dict[int, type[PronyError]] = {
    401: AccessError,
    403: AccessError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    429: AccessError,
    502: TransportError,
    503: errors.CapacityError,
}


def base_of(url: str) -> str:
    """Return a server's address as it is kept: scheme and host, the path that it lives under, no slash at the end.

    Raises:
        InputError: It is no address of a server, or has a user, a query or a fragment.
    """
    text = url.strip()
    hint = "an address looks like http://127.0.0.1:7337 or https://prony.example.org"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise InputError(f"{text!r} is not the address of a server: {exc}", hint=hint) from exc
    if parts.scheme not in ("http", "https") or not host or any(letter.isspace() for letter in text):
        raise InputError(f"{text!r} is not the address of a server", hint=hint)
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError(f"{parts.scheme}://{host}: an address may not have a user, a query or a fragment", hint=hint)
    return text.rstrip("/").removesuffix(API)


def endpoint(base: str, *parts: str) -> str:
    """Return where an operation is found; each part is quoted, so that an id cannot lead elsewhere."""
    return "/".join([base + API, *(_quote(part) for part in parts)])


def _quote(part: str) -> str:
    # A part of dots alone would climb: what joins addresses takes it away even when it is quoted.
    if not part.strip("."):
        raise InputError(f"{part!r} cannot be an id", hint="an id has letters, digits, '.', '_' and '-'")
    return quote(part, safe="")


def headers(token: str | None, *, key: str | None = None) -> dict[str, str]:
    """Return who asks, the trace that it is part of, and the name under which a repeated creation is known."""
    made = {"Authorization": f"Bearer {_check_token(token)}"} if token else {}
    trace = current_trace()
    return made | ({TRACEPARENT: trace} if trace else {}) | ({IDEMPOTENCY_KEY: key} if key else {})


def _check_token(token: str) -> str:
    if token.isascii() and token.isprintable() and " " not in token:
        return token
    raise InputError("the token has characters that no token has", hint="use exactly what the server printed")


def read_answer(noun: type[N], body: str | bytes, where: str) -> N:
    """Return what the server answered as a noun; keys that only a newer server knows are passed over."""
    try:
        return noun.read_json(body)
    except ValidationError as exc:
        raise _unreadable(where, exc) from exc


def read_all(noun: type[N], body: str | bytes, where: str) -> tuple[N, ...]:
    """Return an answer that is a list of nouns."""
    try:
        return TypeAdapter(tuple[noun, ...]).validate_json(body, extra="ignore")  # type: ignore[valid-type]
    except ValidationError as exc:
        raise _unreadable(where, exc) from exc


def _unreadable(where: str, error: ValidationError) -> TransportError:
    hint = "check that a Prony server of the same version runs at this address"
    return TransportError(f"{where} sent an answer that cannot be read: {describe_invalid(error)}", hint=hint)


def error_of(status: int, body: bytes, where: str, *, location: str = "", token_hint: str = "") -> PronyError:
    """Return the error that an answer stands for: the server's own kind and words, or that it is no Prony server.

    `token_hint`: no token was sent, and how one is given here is a better hint than how it travels.
    """
    try:
        problem = Problem.read_json(body)
    except ValidationError:
        return _stranger(status, body, where, location)
    if problem.code == RecipeError.code:
        return RecipeError(problem.detail, hint=problem.hint, problems=problem.problems)
    kind = _KINDS.get(problem.code) or _BY_STATUS.get(status) or (InputError if status < 500 else PronyError)
    hint = token_hint if status == HTTPStatus.UNAUTHORIZED and token_hint else problem.hint
    return kind(_describe_problem(problem), hint=hint, code=problem.code)


def _describe_problem(problem: Problem) -> str:
    named = problem.field and problem.field not in problem.detail
    return f"{problem.field}: {problem.detail}" if named else problem.detail


def _stranger(status: int, body: bytes, where: str, location: str) -> TransportError:
    """Return the error for an answer that no Prony server gives: something else is at this address, or before it."""
    if location:
        return TransportError(f"{where} redirects to {location}", hint="use that address of the server")
    words = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    said = " ".join(body[:_LONGEST_QUOTE].decode(errors="replace").split())
    quoted = f": {said}" if said and not said.startswith("<") else ""
    return TransportError(
        f"{where} answered {status} {words}".rstrip() + quoted,
        hint="check that a Prony server runs at this address, and that a proxy in front of it reaches it",
    )


def unreachable(base: str, reason: str) -> TransportError:
    """Return the error for a server that does not answer, with what to do."""
    return TransportError(
        f"cannot reach the server at {base}: {reason or 'no reason given'}",
        hint="is it running there? `prony server` starts one; --server or PRONY_SERVER sets its address",
    )


def delays(first_s: float = 0.2, most_s: float = 10.0) -> Iterator[float]:
    """Yield for ever how long to wait before the next try: each twice the last, scattered so that crowds spread."""
    pause_s = first_s
    while True:
        yield pause_s * random.uniform(0.5, 1.0)
        pause_s = min(most_s, 2 * pause_s)
