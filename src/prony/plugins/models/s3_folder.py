"""Mirror all objects below an S3 prefix into a folder, fetching only what has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from prony.errors import InputError, NotFoundError, PronyError, StoreError, TransportError
from prony.plugins.models.fetching import Fetching
from prony.plugins.models.lock import hold_lock
from prony.plugins.models.transfer import download
from prony.ports.models import ModelFiles
from prony.runner.checksum import verify
from prony.runner.onnx_file import is_inside

_INDEX = ".index.json"
_MOST = 1_000_000


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
                raise StoreError(f"cannot keep {self.reference} in {root}: {exc}", hint="is the disk full?") from exc
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
                f"{one.key!r} in {self.reference} is no name of a file", hint="fetch the others one by one"
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
                raise InputError(f"{self.reference} holds more than {_MOST} objects", hint="name a smaller part of it")
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
                f"the list of {self.reference} is not as S3 writes it: {exc}", code="bad_status"
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
