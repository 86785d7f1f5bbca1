"""Driver for any HTTP server: build requests from methods, paths and bodies, and check the replies."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from prony.errors import InputError
from prony.model.base import Noun
from prony.plugins.drivers.answer import digest_refusal
from prony.plugins.drivers.http.probe import HTTP_HELP, HttpVersion, check_version, request_to, whose, wire_of
from prony.plugins.drivers.http.template import Template
from prony.ports.driver import Cause, Digest, Keeps, Prepared, Reply, Request, Wants

_OPERATION = re.compile(r"(?:([A-Za-z]+) )?(\S*)")


class HttpOptions(Noun):
    """One kind of request, or several with weights. Paths, headers and bodies may have placeholders."""

    method: str = Field(default="GET", pattern=r"^[A-Za-z]+$", description="default method of requests")
    path: str = Field(
        default="", description="path of requests, after the endpoint's own path", examples=["/items/{seq}"]
    )
    headers: dict[str, str] = Field(default={}, description="headers of every request")
    body: str | None = Field(default=None, description="body of requests", examples=['{"id": {seq}}'])
    operations: dict[str, float] = Field(
        default={}, description="several kinds of requests with their weights: `POST /items: 1`"
    )
    bodies: dict[str, str] = Field(default={}, description="body of each operation, by its name in `operations`")
    status: list[int] = Field(default=[], description="status codes that count as success; default: all below 400")
    contains: str | None = Field(default=None, min_length=1, description="text that a successful reply must contain")
    json_equals: dict[str, Any] = Field(
        default={}, description="values that a successful JSON reply must have, by dotted path: `items.0.id: 7`"
    )
    distinct: int = Field(
        default=10_000,
        ge=1,
        le=10_000_000,
        description="number of different requests to prepare; they repeat after that",
    )
    http: HttpVersion = Field(default=1, description=HTTP_HELP)
    api_key_env: str | None = Field(
        default=None, min_length=1, description="NAME of the environment variable with the key"
    )

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        for name, weight in self.operations.items():
            if _OPERATION.fullmatch(name) is None or not 0 < weight < float("inf"):
                raise ValueError(f"operations.{name}: write a method and a path with a weight, such as `GET /items: 3`")
        unknown = self.bodies.keys() - self.operations.keys()
        if unknown:
            raise ValueError(f"bodies.{min(unknown)} is not in operations")
        return self


@dataclass(frozen=True)
class _Kind:
    """One kind of request, with its placeholders."""

    name: str
    method: str
    path: Template
    headers: dict[str, Template]
    body: Template | None
    version: HttpVersion

    @property
    def varies(self) -> bool:
        texts = [self.path, *self.headers.values(), *([] if self.body is None else [self.body])]
        return any(text.varies for text in texts)

    def request(self, wants: Wants, number: int, rng: np.random.Generator) -> Request:
        headers = {name: text.fill(number, rng) for name, text in self.headers.items()}
        body = b"" if self.body is None else self.body.fill(number, rng).encode("utf-8", "replace")
        content = request_to(wants.endpoint, self.method, self.path.fill(number, rng), headers, body, self.version)
        return Request(content, operation=self.name)


class Http:
    """Any HTTP server."""

    name: ClassVar[str] = "http"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "unix")
    asks: ClassVar[bool] = False
    makes: ClassVar[bool] = False
    Options: ClassVar[type[Any]] = HttpOptions

    def __init__(self) -> None:
        self._expects = HttpOptions()

    def prepare(self, wants: Wants) -> Prepared:
        options: HttpOptions = wants.options
        self._expects = options
        check_version(wants.endpoint, options.http)
        kinds, weights = _kinds(options, wants)
        count = 1
        if len(kinds) > 1 or kinds[0].varies:
            count = min(options.distinct, wants.count or options.distinct)
        rng = np.random.Generator(np.random.PCG64(wants.seed))
        chosen = rng.choice(len(kinds), size=count, p=np.array(weights) / sum(weights))
        requests = [kinds[kind].request(wants, number, rng) for number, kind in enumerate(chosen)]
        looks = options.status or options.contains is not None or options.json_equals
        return Prepared(
            requests,
            wire_of(options.http),
            wire_options={"good": options.status, "bodyless": _is_bodyless(kinds)},
            keeps=Keeps.REPLY if looks else Keeps.NOTHING,
            notes={"requests": str(count), "operations": ", ".join(kind.name for kind in kinds)},
        )

    def digest(self, request: Request, reply: Reply) -> Digest:  # noqa: ARG002 - every reply is held to the same
        good = self._expects.status
        if reply.status not in good if good else reply.status >= 400:
            return digest_refusal(reply)
        wrong = _wrong(self._expects, reply.body)
        return Digest(Cause.CONTENT, wrong) if wrong else Digest()

    def finish(self) -> None:
        """Nothing was made at the endpoint."""


def _kinds(options: HttpOptions, wants: Wants) -> tuple[list[_Kind], list[float]]:
    """Return the kinds of request with their weights."""
    kinds = []
    for name in options.operations or {f"{options.method} {options.path}": 1.0}:
        match = _OPERATION.fullmatch(name)
        assert match is not None  # the options have been checked
        body = options.bodies.get(name, options.body)
        headers = whose(wants.endpoint, options.api_key_env) | options.headers
        if body is not None and "content-type" not in {header.lower() for header in headers}:
            is_json = body.lstrip()[:1] in ("{", "[")
            headers["Content-Type"] = "application/json" if is_json else "text/plain; charset=utf-8"
        texts = {header: Template(text) for header, text in headers.items()}
        method = (match[1] or options.method).upper()
        path = Template(match[2])
        filled = None if body is None else Template(body)
        kinds.append(_Kind(name.strip(), method, path, texts, filled, options.http))
    return kinds, list(options.operations.values()) or [1.0]


def _is_bodyless(kinds: list[_Kind]) -> bool:
    """Do all replies come without a body? The wire must know it: their heads tell the length of what does not come."""
    heads = [kind.method == "HEAD" for kind in kinds]
    if any(heads) and not all(heads):
        raise InputError("HEAD cannot be mixed with other methods", hint="use a recipe for each")
    return all(heads)


def _wrong(expects: HttpOptions, body: bytes) -> str:
    """Return what a reply lacks, or nothing."""
    if expects.contains is not None and expects.contains.encode() not in body:
        return f"the reply does not contain {expects.contains!r}"
    if not expects.json_equals:
        return ""
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):
        return "the reply is not JSON"
    for path, expected in expects.json_equals.items():
        found = _at(value, path)
        if found != expected or isinstance(found, bool) is not isinstance(expected, bool):
            return f"{path} is {json.dumps(found)[:100]}, not {json.dumps(expected)[:100]}"
    return ""


def _at(value: Any, path: str) -> Any:
    """Return what stands at a dotted path, None where nothing does."""
    for key in path.split("."):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and re.fullmatch(r"[0-9]{1,9}", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
