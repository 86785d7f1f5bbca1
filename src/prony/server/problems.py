"""Render errors as problem documents that reveal nothing internal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from prony.errors import InputError, PronyError, http_status
from prony.model.problem import Problem
from prony.model.validation_words import describe_invalid_value

# What nginx notes where a client went before its answer came.
GONE = 499
MEDIA_TYPE = "application/problem+json"
_MOST_TOLD = 50
# What a client does next, where the protocol has a word for it.
_HEADERS: dict[int, dict[str, str]] = {
    401: {"WWW-Authenticate": 'Bearer realm="prony"'},
    429: {"Retry-After": "60"},
    503: {"Retry-After": "1"},
}


# Python 3.13 has new words for these; what a client sees does not depend on the server's Python.
_PHRASES = {
    413: "Request Entity Too Large",
    414: "Request-URI Too Long",
    416: "Requested Range Not Satisfiable",
    422: "Unprocessable Entity",
}


class RequestError(InputError):
    """The request itself is wrong; `field` is the dotted path of the part that is."""

    code = "invalid"

    def __init__(
        self,
        message: str,
        *,
        status: int = 422,
        field: str = "",
        hint: str = "",
        code: str | None = None,
        problems: Sequence[dict[str, str]] = (),
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.status = status
        self.field = field
        self.problems = list(problems)


class MethodError(RequestError):
    """The path is right and the method is not; `allowed` are those that would be."""

    code = "method_not_allowed"

    def __init__(self, message: str, *, allowed: Iterable[str]) -> None:
        self.allow = ", ".join(sorted(allowed))
        super().__init__(message, status=405, hint=f"allowed: {self.allow}")


class ClientGoneError(Exception):
    """Whoever asked is not there any more: nobody is left to be told anything."""


def status_phrase(status: int) -> str:
    """Return the words of an HTTP status."""
    return _PHRASES.get(status) or HTTPStatus(status).phrase


def problem_of(error: PronyError) -> Problem:
    status = error.status if isinstance(error, RequestError) else http_status(error)
    return Problem(
        type=f"urn:prony:{error.code}",
        title=status_phrase(status),
        status=status,
        code=error.code,
        detail=error.message,
        hint=error.hint,
        field=str(getattr(error, "field", "")),
        problems=tuple(getattr(error, "problems", ())[:_MOST_TOLD]),
    )


def refusal(error: PronyError, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that failed."""
    allow = {"Allow": error.allow} if isinstance(error, MethodError) else {}
    return _render(problem_of(error), {**allow, **(headers or {})})


def fault() -> Response:
    """Return the answer where Prony itself is wrong: the reason is in the log and not here."""
    hint = "this is a bug in Prony: the server's log has details under the id of this request"
    return refusal(_InternalError("the server failed to answer this request", hint=hint))


class _InternalError(PronyError):
    code = "internal"


def _render(problem: Problem, headers: Mapping[str, str]) -> Response:
    # Not by pydantic: what a client sent may hold half a surrogate pair, and must still be told.
    body = json.dumps(problem.model_dump(), default=str).encode()
    told = {**_HEADERS.get(problem.status, {}), **headers}
    return Response(body, status_code=problem.status, media_type=MEDIA_TYPE, headers=told)


def invalid(error: ValidationError, *, whole: str) -> RequestError:
    """Return what pydantic found wrong with a request, each with its dotted path; `whole` names what was read."""
    details = error.errors(include_url=False, include_input=False)
    if details[0]["type"] == "json_invalid":
        message = f"{whole} {describe_invalid_value(details[0])}"
        return RequestError(message, status=400, code="malformed", hint="send one JSON document in UTF-8")
    problems = [
        {"path": _join_path(detail["loc"]), "message": describe_invalid_value(detail)}
        for detail in details[:_MOST_TOLD]
    ]
    first = problems[0]
    place = first["path"] or whole
    more = f" (and {len(details) - 1} more problems)" if len(details) > 1 else ""
    hint = _hint(str(details[0]["type"]), first["path"])
    return RequestError(f"{place}: {first['message']}{more}", field=first["path"], hint=hint, problems=problems)


def _join_path(keys: Sequence[str | int]) -> str:
    return ".".join(str(key)[:100] for key in keys)


def _hint(kind: str, path: str) -> str:
    if kind == "extra_forbidden":
        return f"remove {path}: there is no such field; /docs lists the fields"
    if kind == "missing":
        return f"add {path}"
    return "/docs shows what each operation takes"


def describe_refusal(status: int) -> dict[str, Any]:
    """Return how OpenAPI tells of a refusal."""
    return {
        "description": status_phrase(status),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
