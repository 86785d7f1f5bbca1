"""Sign S3 requests with AWS Signature Version 4, in the query or in headers.

A signature in the address leaves the body out of account, so that a request can be made long before it is sent: one
that is signed in its headers is refused a quarter of an hour later, this one after seven days.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

WEEK_S = 7 * 24 * 3600  # the longest that is allowed
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Signer:
    """Who signs, and for which server; `at` is when, in UTC; `session` goes with keys that are lent for a while."""

    access_key: str
    secret_key: str
    region: str
    host: str  # as in the Host header
    at: datetime
    session: str = ""

    def address(self, method: str, path: str, query: dict[str, str] | None = None, *, expires_s: int = WEEK_S) -> str:
        """Return the path with the query that signs it. `path` is not quoted yet."""
        words = {
            **(query or {}),
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.access_key}/{self._scope}",
            "X-Amz-Date": self._stamp,
            "X-Amz-Expires": str(expires_s),
            "X-Amz-SignedHeaders": "host",
        }
        target, asked = quote_s3_path(path), query_text(words)
        canonical = f"{method}\n{target}\n{asked}\nhost:{self.host}\n\nhost\nUNSIGNED-PAYLOAD"
        return f"{target}?{asked}&X-Amz-Signature={self._signature(canonical)}"

    def headers(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: bytes = b""
    ) -> dict[str, str]:
        """Return the headers that sign a request. `path` is not quoted yet."""
        content = hashlib.sha256(body).hexdigest()
        signed = {"host": self.host, "x-amz-content-sha256": content, "x-amz-date": self._stamp}
        signed |= {"x-amz-security-token": self.session} if self.session else {}
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        canonical = f"{method}\n{quote_s3_path(path)}\n{query_text(query or {})}\n{lines}\n{names}\n{content}"
        credential = f"Credential={self.access_key}/{self._scope}, SignedHeaders={names}"
        return {**signed, "authorization": f"{_ALGORITHM} {credential}, Signature={self._signature(canonical)}"}

    @property
    def _stamp(self) -> str:
        return f"{self.at:%Y%m%dT%H%M%SZ}"

    @property
    def _scope(self) -> str:
        return f"{self.at:%Y%m%d}/{self.region}/s3/aws4_request"

    def _signature(self, canonical: str) -> str:
        told = f"{_ALGORITHM}\n{self._stamp}\n{self._scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        return _mac(_key(self.secret_key, f"{self.at:%Y%m%d}", self.region), told).hex()


def quote_s3_path(path: str) -> str:
    """Return a path as it is signed and sent."""
    return quote(path, safe="/-_.~")


def query_text(words: Mapping[str, str]) -> str:
    """Return a query as it is signed and sent."""
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(words.items()))


@lru_cache(maxsize=8)
def _key(secret: str, day: str, region: str) -> bytes:
    return _mac(_mac(_mac(_mac(f"AWS4{secret}".encode(), day), region), "s3"), "aws4_request")


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
