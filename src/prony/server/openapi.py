"""Build the OpenAPI document from the routes, with refusals, security and non-JSON bodies."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from prony import __version__
from prony.model.problem import Problem
from prony.server.auth import ROLES
from prony.server.problems import describe_refusal

_ABOUT = """A fleet that runs recipes on many devices and keeps what they measured.

Errors are problem documents (`application/problem+json`) with a stable `code`, the `field` that is wrong and a `hint`.
Lists come in pages: `next` is the `cursor` of the page that follows.
"""
# Of FastAPI's own making; a refusal here is a Problem.
_FOREIGN = ("HTTPValidationError", "ValidationError")

Described = dict[str, Any]
_JSON = "application/json"
_TEXT = {"type": "string"}


def text(*kinds: str, of: str) -> Described:
    """Describe an answer that is text, or JSON of no schema of its own."""
    return {"description": of, "content": {kind: {"schema": {} if kind == _JSON else _TEXT} for kind in kinds}}


def binary(kind: str, of: str) -> Described:
    """Describe an answer of octets."""
    return {"description": of, "content": {kind: {"schema": {"type": "string", "format": "binary"}}}}


def octets_body(kind: str, of: str) -> Described:
    """Describe a request that brings octets."""
    content = {kind: {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"description": of, "content": content}}


def header_of(name: str, of: str) -> Described:
    """Describe a header of an answer."""
    return {name: {"description": of, "schema": {"type": "string"}}}


def document(app: FastAPI) -> Described:
    """Return the whole document; made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title="Prony",
            version=__version__,
            description=_ABOUT,
            routes=app.routes,
            separate_input_output_schemas=False,  # one noun, one name
        )
        components = made["components"]
        components["schemas"]["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        for name in _FOREIGN:
            components["schemas"].pop(name, None)
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in made["paths"].items():
            for method, operation in operations.items():
                _complete(path, method, operation)
        app.openapi_schema = made
    return app.openapi_schema


def _complete(path: str, method: str, operation: Described) -> None:
    name = operation["operationId"]
    responses = operation["responses"]
    responses.pop("422", None)
    for status in _refusals(path, method, operation):
        responses[str(status)] = describe_refusal(status)
    responses["default"] = describe_refusal(500) | {"description": "the server failed, or cannot answer now"}
    role = ROLES[name]
    operation["security"] = [] if role is None else [{"token": []}]
    operation["description"] = f"{operation.get('description', '')}\n\nRole: {role or 'none'}.".strip()
    if name in _TAGGED:
        _tag(operation)


_TAGGED = frozenset(
    {"experiments", "experiment", "jobs", "job", "agents", "agent", "queue", "stats", "examples", "catalogue", "kinds"}
)


def _tag(operation: Described) -> None:
    known = {"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}}
    operation.setdefault("parameters", []).append(known | {"description": "the ETag of your copy"})
    operation["responses"]["200"]["headers"] = header_of("ETag", "changes when the answer does")
    operation["responses"]["304"] = {"description": "your copy is current"}


def _refusals(path: str, method: str, operation: Described) -> list[int]:
    """Return the statuses with which an operation may refuse."""
    if ROLES[operation["operationId"]] is None:
        return []
    found = [401, 403, 429]
    if "{" in path:
        found.append(404)
    if method != "get":
        found += [409, 422]
    if "requestBody" in operation:
        found += [400, 413]
    if _JSON in operation.get("requestBody", {}).get("content", {}):
        found.append(415)
    if operation["operationId"] == "upload":
        found.append(411)
    if operation.get("parameters"):
        found.append(422)
    return sorted(set(found))
