"""Ask an S3 store as its owner, and check that it stores objects."""

from __future__ import annotations

from datetime import UTC, datetime

from prony.plugins.s3_sign import Signer
from prony.plugins.services.asking import READY_S, Answer, SilentError, ask
from prony.ports.driver import Endpoint

_REGION = "us-east-1"


def ask_as_owner(
    endpoint: Endpoint, method: str, path: str, body: bytes = b"", *, timeout_s: float = READY_S
) -> Answer:
    """Ask as the owner of the store."""
    host = f"{endpoint.host}:{endpoint.port}"
    signer = Signer(endpoint.user, endpoint.password, _REGION, host, datetime.now(UTC))
    headers = signer.headers(method, path, body=body)
    return ask(endpoint, path, method=method, headers=headers, body=body or None, timeout_s=timeout_s)


def cannot_store(endpoint: Endpoint) -> str | None:
    """Return None when the store takes an object, gives it back and removes it; else what went wrong."""
    bucket, content = "/prony-ready", b"prony"
    steps = (("PUT", bucket, b""), ("PUT", f"{bucket}/ready", content), ("GET", f"{bucket}/ready", b""))
    last = b""
    try:
        for method, path, body in steps:
            answer = ask_as_owner(endpoint, method, path, body)
            # A bucket that an earlier question made is as good as a new one.
            if answer.status // 100 != 2 and answer.status != 409:
                return f"{method} {path} answered {answer.status} {answer.body[:200].decode(errors='replace')}"
            last = answer.body
        for path in (f"{bucket}/ready", bucket):
            answer = ask_as_owner(endpoint, "DELETE", path)
            if answer.status // 100 != 2 and answer.status != 404:
                return f"DELETE {path} answered {answer.status} {answer.body[:200].decode(errors='replace')}"
    except SilentError as exc:
        return str(exc)
    return None if last == content else "an object came back changed"
