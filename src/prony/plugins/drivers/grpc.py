"""Driver for the gRPC health check."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from pydantic import Field

from prony.model.base import Noun
from prony.plugins.drivers.http.probe import check_version, request_to, whose, wire_of
from prony.ports.driver import Cause, Digest, Keeps, Prepared, Reply, Request, Wants

_PATH = "/grpc.health.v1.Health/Check"
_STATES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_SERVING = 1


class GrpcOptions(Noun):
    """Whose health is asked for."""

    service: str = Field(default="", max_length=1000, description="name of the service; default: the whole server")
    headers: dict[str, str] = Field(default={}, description="extra metadata of every call")
    api_key_env: str | None = Field(
        default=None, min_length=1, description="NAME of the environment variable with the key"
    )


class GrpcHealth:
    """The health of a gRPC server: `grpc.health.v1.Health/Check`."""

    name: ClassVar[str] = "grpc"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "unix")
    asks: ClassVar[bool] = False
    makes: ClassVar[bool] = False
    Options: ClassVar[type[Any]] = GrpcOptions

    def prepare(self, wants: Wants) -> Prepared:
        options: GrpcOptions = wants.options
        check_version(wants.endpoint, 2)
        said = {"Content-Type": "application/grpc", "TE": "trailers"}
        headers = {**said, **whose(wants.endpoint, options.api_key_env), **options.headers}
        content = request_to(wants.endpoint, "POST", _PATH, headers, _message(options.service), 2)
        notes = {"service": options.service or "the whole server"}
        return Prepared([Request(content, operation="check")], wire_of(2), {"grpc": True}, Keeps.REPLY, notes)

    def digest(self, request: Request, reply: Reply) -> Digest:  # noqa: ARG002 - every call is the same
        state = _state(reply.body)
        if state is None:
            return Digest(Cause.MALFORMED, "the reply is not a HealthCheckResponse")
        name = _STATES[state] if state < len(_STATES) else str(state)
        return Digest() if state == _SERVING else Digest(Cause.CONTENT, f"the service is {name}")

    def finish(self) -> None:
        """Nothing was made at the endpoint."""


def _message(service: str) -> bytes:
    """Return a HealthCheckRequest: its first field is the service's name, and left out where that is empty."""
    name = service.encode()
    body = b"\x0a" + _varint(len(name)) + name if name else b""
    return struct.pack(">BI", 0, len(body)) + body


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _state(body: bytes) -> int | None:
    """Return the status of one uncompressed HealthCheckResponse: its only field, left out where it is 0."""
    if len(body) < 5 or body[0] != 0 or int.from_bytes(body[1:5], "big") != len(body) - 5:
        return None
    if len(body) == 5:
        return 0
    return body[6] if len(body) == 7 and body[5] == 0x08 and body[6] < 0x80 else None
