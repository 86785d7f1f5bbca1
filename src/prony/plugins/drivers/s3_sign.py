"""A request to an S3 store in, the query that signs it out (AWS Signature Version 4, presigned).

The signature is in the address and leaves the body out of account, so that a request can be made long before it is
sent: one that is signed in its headers would be refused a quarter of an hour later, this one after seven days.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

WEEK_S = 7 * 24 * 3600  # the longest that is allowed
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Signer:
    """Who signs, and for which server; `at` is when, in UTC."""

    access_key: str
    secret_key: str
    region: str
    host: str  # as in the Host header
    at: datetime

    def address(self, method: str, path: str, query: dict[str, str] | None = None, *, expires_s: int = WEEK_S) -> str:
        """Return the path with the query that signs it. `path` is not quoted yet."""
        stamp, day = f"{self.at:%Y%m%dT%H%M%SZ}", f"{self.at:%Y%m%d}"
        scope = f"{day}/{self.region}/s3/aws4_request"
        words = {
            **(query or {}),
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.access_key}/{scope}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(expires_s),
            "X-Amz-SignedHeaders": "host",
        }
        asked = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(words.items()))
        target = quote(path, safe="/-_.~")
        canonical = f"{method}\n{target}\n{asked}\nhost:{self.host}\n\nhost\nUNSIGNED-PAYLOAD"
        told = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = _key(self.secret_key, day, self.region)
        return f"{target}?{asked}&X-Amz-Signature={_mac(key, told).hex()}"


@lru_cache(maxsize=8)
def _key(secret: str, day: str, region: str) -> bytes:
    return _mac(_mac(_mac(_mac(f"AWS4{secret}".encode(), day), region), "s3"), "aws4_request")


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
