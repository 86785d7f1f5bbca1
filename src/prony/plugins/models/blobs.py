"""Store downloaded files by content hash, shared by every process on the machine.

Name the files that must lie beside a model's main file.

The lock of a model in the cache: processes that want the same file take turns.

Write a file once across processes, so that no one sees it half-written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from prony.errors import InputError, StoreError
from prony.plugins.models.transfer import Validators
from prony.runner.checksum import checksum
from prony.runner.onnx_file import read_graph
from prony.store.lock import take_file_lock


def companion_names(path: Path) -> tuple[str, ...]:
    """Return relative names: the external data of an ONNX file, the weights of an OpenVINO description."""
    ending = path.suffix.lower()
    if ending == ".onnx":
        return read_graph(path).external_files
    if ending == ".xml":
        return (path.with_suffix(".bin").name,)
    return ()


def check_ending(name: str, formats: tuple[str, ...]) -> None:
    """Refuse a file that the chosen engine does not load, before anything is read or downloaded."""
    if formats and not name.lower().endswith(formats):
        raise InputError(
            f"the chosen engine does not load {name}: it loads {', '.join(formats)}",
            hint="choose another engine, or another format of the model",
            code="format_unavailable",
        )


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


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock at `path` through the block. The system lets go of it when the process ends, however it ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take_file_lock(path, wait_s=None)
    except OSError as exc:
        raise StoreError(
            f"cannot write to the model cache at {path.parent}: {exc.strerror}",
            hint="set PRONY_HOME to a folder that you may write to",
        ) from exc
    try:
        yield
    finally:
        lock.release()


def made_once(path: Path, write: Callable[[Path], None]) -> Path:
    """Return `path`, calling `write` with a temporary name of the same ending unless the file is there and whole."""
    if _is_whole(path):
        return path
    with hold_lock(path.with_name(f".{path.name}.lock")):
        if not _is_whole(path):  # another process may have made it while this one waited
            _make(path, write)
    return path


def _size_note(path: Path) -> Path:
    return path.with_name(f".{path.name}.size")


def _is_whole(path: Path) -> bool:
    """Compare with the size that was noted after writing: a disk that filled up or lost power leaves short files."""
    try:
        return path.stat().st_size == int(_size_note(path).read_text())
    except (OSError, ValueError):
        return False  # what keeps it from being read will keep it from being written, and is told there


def _make(path: Path, write: Callable[[Path], None]) -> None:
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        write(part)
        size = part.stat().st_size
        part.replace(path)
        _size_note(path).write_text(str(size))
    except OSError as exc:
        raise StoreError(f"cannot write {path}: {exc}", hint="is the disk full, or the folder not writable?") from exc
    finally:
        part.unlink(missing_ok=True)
