"""Model source for `s3://bucket/key`, a file or a folder, with keys from the environment or none.

The keys are those that AWS's own programs read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION
or AWS_DEFAULT_REGION, and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for a store that is not Amazon's.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from prony.errors import InputError, NotFoundError, PronyError
from prony.plugins.models.addresses import Address, is_public
from prony.plugins.models.fetching import Fetching
from prony.plugins.models.s3_folder import Folder
from prony.plugins.models.transfer import Limits, Validators, download
from prony.plugins.s3_sign import Signer, query_text, quote_s3_path
from prony.ports.models import FetchOptions, ModelFiles, Progress

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


@dataclass(frozen=True)
class Store:
    """Where objects are, and who asks; without keys nobody in particular."""

    endpoint: str  # of a store that is not Amazon's
    region: str
    access_key: str = ""
    secret_key: str = ""
    session: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Store:
        def first(*names: str) -> str:
            return next((environment[name] for name in names if environment.get(name)), "")

        return cls(
            endpoint=first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL").rstrip("/"),
            region=first("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1",
            access_key=first("AWS_ACCESS_KEY_ID"),
            secret_key=first("AWS_SECRET_ACCESS_KEY"),
            session=first("AWS_SESSION_TOKEN"),
        )

    def url(self, bucket: str, key: str, query: Mapping[str, str] | None = None) -> str:
        """Return where an object is, or the bucket."""
        asked = f"?{query_text(query)}" if query else ""
        if self.endpoint:
            return f"{self.endpoint}/{bucket}{quote_s3_path(f'/{key}') if key else ''}{asked}"
        # A certificate for all buckets does not hold for names with dots.
        if "." in bucket:
            return f"https://s3.{self.region}.amazonaws.com/{bucket}{quote_s3_path(f'/{key}')}{asked}"
        return f"https://{bucket}.s3.{self.region}.amazonaws.com{quote_s3_path(f'/{key}')}{asked}"

    def headers(self, url: str) -> Mapping[str, str]:
        """Return what signs a request to an address of this store; elsewhere nobody is told who asks."""
        parts = urlsplit(url)
        if not self.access_key or not self.secret_key or not self._is_own(url):
            return {}
        signer = Signer(
            self.access_key, self.secret_key, self.region, parts.netloc, datetime.now(UTC), session=self.session
        )
        found = signer.headers("GET", unquote(parts.path), dict(parse_qsl(parts.query, keep_blank_values=True)))
        return {name: value for name, value in found.items() if name != "host"}

    def _is_own(self, url: str) -> bool:
        if self.endpoint:
            return url.startswith(f"{self.endpoint}/")
        return (urlsplit(url).hostname or "").endswith(f"s3.{self.region}.amazonaws.com")


class S3Source:
    """One object, or all those below a prefix as a folder."""

    scheme: ClassVar[str] = "s3"

    def __init__(
        self, pause: Callable[[float], None] = time.sleep, may_reach: Callable[[Address], bool] = is_public
    ) -> None:
        self._pause = pause
        self._may_reach = may_reach

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        bucket, key = _split_reference(reference)
        store = Store.of(os.environ)

        def bring(name: str, part: Path, limits: Limits, known: Validators | None) -> Validators | None:
            return download(store.url(*_split_reference(name)), part, replace(limits, headers=store.headers), known)

        fetching = Fetching(bring, options, progress, self._pause, self._may_reach)
        if key and not key.endswith("/"):
            try:
                return fetching.files(reference)
            except (NotFoundError, InputError) as exc:
                if not _may_be_folder(exc):
                    raise
                missing: PronyError = exc
        else:
            missing = NotFoundError(
                f"{reference} holds nothing", hint="check the bucket and the key", code="unknown_model"
            )
        return Folder(reference, bucket, key.rstrip("/"), store.url, store.headers, fetching).files(missing)


def _may_be_folder(error: PronyError) -> bool:
    """A store that does not let us list says that a missing object is forbidden."""
    return isinstance(error, NotFoundError) or "may not be read" in error.message


def _split_reference(reference: str) -> tuple[str, str]:
    parts = urlsplit(reference)
    if not _BUCKET.fullmatch(parts.netloc) or parts.query or parts.fragment:
        raise InputError(f"{reference!r} is no place in S3", hint="write s3://bucket/key")
    return parts.netloc, unquote(parts.path).removeprefix("/")
