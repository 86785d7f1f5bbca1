"""Model source for `s3://bucket/key`, a file or a folder, with keys from the environment, a profile, a role or none.

The keys are those that AWS's own programs read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION
or AWS_DEFAULT_REGION, and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for a store that is not Amazon's. What these leave
open is read from the profile AWS_PROFILE of the files that AWS's programs share. Without keys in either, those of the
container's or the instance's role are taken.

Of all objects below a folder's prefix, only those that have changed are fetched.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree

from prony.errors import InputError, NotFoundError, PronyError, StoreError, TransportError
from prony.plugins.models.aws_profile import read_aws_profile
from prony.plugins.models.aws_role import read_aws_role
from prony.plugins.models.fetching import Fetching, NetworkSource
from prony.plugins.models.lock import hold_lock
from prony.plugins.models.transfer import TransferLimits, Validators, download
from prony.plugins.s3_sign import Signer, query_text, quote_s3_path
from prony.ports.models import FetchOptions, ModelFiles, Progress
from prony.runner.checksum import verify
from prony.runner.onnx_file import is_inside

_INDEX = ".index.json"
_MOST = 1_000_000
_KEYS = ("access_key_id", "secret_access_key", "session_token")


@dataclass(frozen=True)
class Listed:
    key: str
    etag: str
    size: int


@dataclass(frozen=True)
class Folder:
    """`url` and `headers` are the store's; `fetching` has the limits."""

    reference: str
    bucket: str
    key: str
    url: Callable[..., str]
    headers: Callable[[str], Mapping[str, str]]
    fetching: Fetching

    def files(self, missing: PronyError) -> ModelFiles:
        """Return the folder as it is in the store now; where nothing is below the prefix, raise what is missing."""
        name = hashlib.sha256(f"{self.url(self.bucket, '')} {self.reference}".encode()).hexdigest()
        root = self.fetching.options.cache / "folders" / name
        with hold_lock(root.with_suffix(".lock")):
            try:
                root.mkdir(parents=True, exist_ok=True)
                files = self._brought(root, missing)
            except OSError as exc:
                raise StoreError(
                    f"cannot store {self.reference} in {root}: {exc}", hint="check the free disk space"
                ) from exc
        verify(files, self.fetching.options.checksum, source=self.reference)
        return ModelFiles(path=root / "content", files=files)

    def _brought(self, root: Path, missing: PronyError) -> tuple[Path, ...]:
        listed = {self._inside(one): one for one in self._list_objects(root, missing) if not one.key.endswith("/")}
        if not listed:
            raise missing
        index = root / _INDEX
        known = _read(index)
        content = root / "content"
        for old in content.rglob("*") if content.is_dir() else ():
            if old.is_file() and old.relative_to(content).as_posix() not in listed:
                old.unlink()
        for name, one in listed.items():
            self._bring(content / name, name, one, known)
            known[name] = [one.etag, one.size]
            self.fetching.spent += one.size
        index.write_text(json.dumps({name: known[name] for name in listed}))
        return tuple(content / name for name in sorted(listed))

    def _inside(self, one: Listed) -> str:
        """Return an object's name below the prefix; what would lead out of the folder is refused."""
        name = one.key.removeprefix(f"{self.key}/" if self.key else "")
        if not is_inside(name) or "\\" in name:
            raise InputError(
                f"{one.key!r} in {self.reference} is not a valid file name", hint="fetch the others one by one"
            )
        return name

    def _bring(self, path: Path, name: str, one: Listed, known: Mapping[str, list[str | int]]) -> None:
        if known.get(name) == [one.etag, one.size] and path.is_file() and path.stat().st_size == one.size:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        limits = replace(self.fetching.limits(), headers=self.headers)
        part = path.with_name(f".{path.name}.part")
        download(self.url(self.bucket, one.key), part, limits)
        part.replace(path)

    def _list_objects(self, root: Path, missing: PronyError) -> Iterator[Listed]:
        token, count = "", 0
        while True:
            page = self._page(root, token, missing)
            for found in page.iter():
                if _bare(found) == "Contents":
                    count += 1
                    yield _read_listing_entry(found)
            if count > _MOST:
                raise InputError(f"{self.reference} has more than {_MOST} objects", hint="use a longer prefix")
            token = next((one.text or "" for one in page.iter() if _bare(one) == "NextContinuationToken"), "")
            if not token:
                return

    def _page(self, root: Path, token: str, missing: PronyError) -> ElementTree.Element:
        query = {"list-type": "2", "prefix": f"{self.key}/" if self.key else ""}
        query |= {"continuation-token": token} if token else {}
        page = root / "page.xml"
        page.unlink(missing_ok=True)
        try:
            download(self.url(self.bucket, "", query), page, replace(self.fetching.limits(), headers=self.headers))
        except (NotFoundError, InputError) as exc:
            raise missing from exc
        try:
            return ElementTree.fromstring(page.read_bytes())
        except ElementTree.ParseError as exc:
            raise TransportError(
                f"the object list of {self.reference} is not valid XML: {exc}",
                hint="check the endpoint: it may not be an S3 service",
                code="bad_status",
            ) from exc


def _bare(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _read_listing_entry(found: ElementTree.Element) -> Listed:
    told = {_bare(one): one.text or "" for one in found}
    return Listed(told.get("Key", ""), told.get("ETag", ""), int(told.get("Size") or 0))


def _read(index: Path) -> dict[str, list[str | int]]:
    try:
        known: dict[str, list[str | int]] = json.loads(index.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return known


_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


@dataclass(frozen=True)
class S3Store:
    """Where objects are, and who asks; without keys nobody in particular."""

    endpoint: str  # of a store that is not Amazon's
    region: str
    access_key: str = ""
    secret_key: str = ""
    session: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> S3Store:
        def first(*names: str) -> str:
            return next((environment[name] for name in names if environment.get(name)), "")

        profile = read_aws_profile(environment)
        # Keys of one place only: half of each would be nobody's.
        own = {name: first(f"AWS_{name.upper()}") for name in _KEYS}
        keys = own if own["access_key_id"] else {name: profile.get(f"aws_{name}", "") for name in _KEYS}
        endpoint = first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") or profile.get("endpoint_url", "")
        return cls(
            endpoint=endpoint.rstrip("/"),
            region=first("AWS_REGION", "AWS_DEFAULT_REGION") or profile.get("region") or "us-east-1",
            access_key=keys["access_key_id"],
            secret_key=keys["secret_access_key"],
            session=keys["session_token"],
        )

    def with_role(self, environment: Mapping[str, str]) -> S3Store:
        """Return the store with the keys of this machine's role, where nobody gave others."""
        if self.access_key:
            return self
        host = urlsplit(self.endpoint).hostname or ""
        keys = read_aws_role(environment, is_amazon=not self.endpoint or host.endswith(".amazonaws.com"))
        if keys is None:
            return self
        return replace(self, access_key=keys.access_key, secret_key=keys.secret_key, session=keys.session)

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


class S3Source(NetworkSource):
    """One object, or all those below a prefix as a folder."""

    scheme: ClassVar[str] = "s3"

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        bucket, key = _split_reference(reference)
        store = S3Store.of(os.environ).with_role(os.environ)

        def bring(name: str, part: Path, limits: TransferLimits, known: Validators | None) -> Validators | None:
            return download(store.url(*_split_reference(name)), part, replace(limits, headers=store.headers), known)

        fetching = self.begin(bring, options, progress)
        if key and not key.endswith("/"):
            try:
                return fetching.files(reference)
            except (NotFoundError, InputError) as exc:
                if not _may_be_folder(exc):
                    raise
                missing: PronyError = exc
        else:
            missing = NotFoundError(
                f"{reference} has no objects", hint="check the bucket and the key", code="unknown_model"
            )
        return Folder(reference, bucket, key.rstrip("/"), store.url, store.headers, fetching).files(missing)


def _may_be_folder(error: PronyError) -> bool:
    """A store that does not let us list says that a missing object is forbidden."""
    return isinstance(error, NotFoundError) or error.code == "no_access"


def _split_reference(reference: str) -> tuple[str, str]:
    parts = urlsplit(reference)
    if not _BUCKET.fullmatch(parts.netloc) or parts.query or parts.fragment:
        raise InputError(f"{reference!r} is not an S3 address", hint="write s3://bucket/key")
    return parts.netloc, unquote(parts.path).removeprefix("/")
