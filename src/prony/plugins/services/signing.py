"""A question to an S3 store in, the headers that prove who asks out (AWS Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime

from prony.plugins.services.asking import Answer, SilentError, ask
from prony.ports.driver import Endpoint

_REGION = "us-east-1"
_EMPTY = hashlib.sha256(b"").hexdigest()


def signed(endpoint: Endpoint, method: str, path: str, body: bytes = b"") -> dict[str, str]:
    """Return the headers of one question; the path must need no escapes, and has no query."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    content = hashlib.sha256(body).hexdigest()
    headers = {"host": f"{endpoint.host}:{endpoint.port}", "x-amz-content-sha256": content, "x-amz-date": stamp}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{content}"
    scope = f"{stamp[:8]}/{_REGION}/s3/aws4_request"
    wanted = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{endpoint.password}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, wanted.encode(), "sha256").hexdigest()
    credential = f"Credential={endpoint.user}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}


def asked(endpoint: Endpoint, method: str, path: str, body: bytes = b"") -> Answer:
    """Ask as the owner of the store."""
    headers = signed(endpoint, method, path, body)
    return ask(endpoint, path, method=method, headers=headers, body=body or None)


def cannot_store(endpoint: Endpoint) -> str | None:
    """Return None when the store takes an object, gives it back and removes it; else what went wrong."""
    bucket, content = "/prony-ready", b"prony"
    steps = (("PUT", bucket, b""), ("PUT", f"{bucket}/ready", content), ("GET", f"{bucket}/ready", b""))
    last = b""
    try:
        for method, path, body in steps:
            answer = asked(endpoint, method, path, body)
            # A bucket that an earlier question made is as good as a new one.
            if answer.status // 100 != 2 and answer.status != 409:
                return f"{method} {path} says {answer.status} {answer.body[:200].decode(errors='replace')}"
            last = answer.body
        for path in (f"{bucket}/ready", bucket):
            asked(endpoint, "DELETE", path)
    except SilentError as exc:
        return str(exc)
    return None if last == content else "an object did not come back as it was put"
