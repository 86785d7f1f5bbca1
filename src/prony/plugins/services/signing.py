"""Ask an S3 store as its owner, and check that it stores objects."""

from __future__ import annotations

from datetime import UTC, datetime

from prony.errors import SutError
from prony.plugins.s3_sign import Signer
from prony.plugins.services.asking import READY_S, HttpAnswer, ask
from prony.ports.driver import Endpoint

_REGION = "us-east-1"
# What writes is waited for: a store that is slow to begin carries out a question whose asker has gone away, and a load
# would find what it left.
_WRITING_S = 30.0


def ask_as_owner(
    endpoint: Endpoint, method: str, path: str, body: bytes = b"", *, timeout_s: float = READY_S
) -> HttpAnswer:
    """Ask as the owner of the store."""
    host = f"{endpoint.host}:{endpoint.port}"
    signer = Signer(endpoint.user, endpoint.password, _REGION, host, datetime.now(UTC))
    headers = signer.headers(method, path, body=body)
    return ask(endpoint, path, method=method, headers=headers, body=body or None, timeout_s=timeout_s)


def cannot_store(endpoint: Endpoint) -> str | None:
    """Return None when the store takes an object, gives it back and removes it; else what went wrong."""
    bucket, content = "/prony-ready", b"prony"
    try:
        _ask_or_fail(endpoint, "GET", "/", timeout_s=READY_S)
        # A bucket that an earlier question made is as good as a new one.
        _ask_or_fail(endpoint, "PUT", bucket, allowed=409)
        _ask_or_fail(endpoint, "PUT", f"{bucket}/ready", content)
        if _ask_or_fail(endpoint, "GET", f"{bucket}/ready") != content:
            return "an object came back changed"
        for path in (f"{bucket}/ready", bucket):
            _ask_or_fail(endpoint, "DELETE", path, allowed=404)
        is_left = bucket[1:].encode() in _ask_or_fail(endpoint, "GET", "/")
    except SutError as exc:
        return str(exc)
    return "the bucket of this check is still there" if is_left else None


def _ask_or_fail(
    endpoint: Endpoint,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    allowed: int = 200,
    timeout_s: float = _WRITING_S,
) -> bytes:
    answer = ask_as_owner(endpoint, method, path, body, timeout_s=timeout_s)
    if answer.status // 100 != 2 and answer.status != allowed:
        said = answer.body[:200].decode(errors="replace")
        raise SutError(f"{method} {path} answered {answer.status} {said}", hint="see the service's log")
    return answer.body
