"""Store downloaded models and the files beside them by content hash, shared by every process on the machine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from prony.errors import InputError
from prony.plugins.models.formats import companion_names
from prony.plugins.models.transfer import Validators
from prony.runner.checksum import checksum


@dataclass(frozen=True)
class BlobEntry:
    """What a URL last brought. `sizes` are those of its files by relative name, the main one first.

    The URL itself is not noted: it may carry a token.
    """

    sha256: str
    filename: str
    etag: str
    modified: str
    sizes: dict[str, int]


class Blobs:
    """`blobs/sha256/<hex>/<name>` holds content; `urls/<hash of the URL>.json` says what a URL brought."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def lock(self, url: str) -> Path:
        return self._cache / "urls" / f"{_key(url)}.lock"

    def staging(self, url: str) -> Path:
        """Return the folder in which the files of a URL are gathered; it outlives a failure, to go on from."""
        folder = self._cache / "partial" / _key(url)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def by_checksum(self, expected: str, filename: str) -> tuple[Path, ...] | None:
        """Return the files whose checksum this is, hashed again now."""
        main = self._folder(expected) / filename
        if not main.is_file():
            return None
        try:
            files = (main, *(main.parent / name for name in companion_names(main)))
            return files if checksum(files) == expected else None
        except (InputError, FileNotFoundError):
            return None  # damaged on this disk: it will be fetched again

    def by_url(self, url: str) -> tuple[BlobEntry, tuple[Path, ...]] | None:
        """Return what this URL brought last, if all of it is still there in its full size."""
        try:
            entry = BlobEntry(**json.loads(self._index(url).read_text()))
            files = tuple(self._folder(entry.sha256) / name for name in entry.sizes)
            whole = [path.stat().st_size for path in files] == list(entry.sizes.values())
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return (entry, files) if whole and files else None

    def keep(self, url: str, files: tuple[Path, ...], version: Validators) -> tuple[Path, ...]:
        """Move verified files to their place and note what the URL brought; the main file appears last."""
        found, source = checksum(files), files[0].parent
        names = [path.relative_to(source).as_posix() for path in files]
        sizes = {name: path.stat().st_size for name, path in zip(names, files, strict=True)}
        folder = self._folder(found)
        for name in reversed(names):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).replace(folder / name)
        entry = BlobEntry(found.removeprefix("sha256:"), names[0], version.etag, version.modified, sizes)
        index = self._index(url)
        part = index.with_suffix(".part")
        part.write_text(json.dumps(asdict(entry), indent=1))
        part.replace(index)
        return tuple(folder / name for name in names)

    def _folder(self, found: str) -> Path:
        return self._cache / "blobs" / "sha256" / found.removeprefix("sha256:")

    def _index(self, url: str) -> Path:
        return self._cache / "urls" / f"{_key(url)}.json"


def _key(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()
