"""Pack a result folder into a plain tar, and unpack it safely.

What is packed holds regular files with relative names and nothing else: POSIX ustar, no compression, no extensions.
The same folder gives the same bytes. What other programs write is unpacked too: folders, and extended headers of PAX
and GNU. Nothing that a tar says is trusted: links, devices, names that lead elsewhere and too many bytes are refused.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO

from prony.errors import InputError, StoreError
from prony.store.bundle import bundle_files

MOST_FILES = 10_000
MOST_BYTES = 8 * 2**30
_BLOCK = tarfile.BLOCKSIZE
_PIECE = 2**20
# Headers that say more of the next file, or of all: its long name, its time.
_EXTENSIONS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME)
_MOST_EXTENSION = 2**16
# One part of a name: whatever every system takes as a file's name and no shell or file browser hides.
_PART = re.compile(r'[^\x00-\x20\x7f/\\:*?"<>|.][^\x00-\x1f\x7f/\\:*?"<>|]{0,99}')
_DEEPEST = 8
_FULL = (errno.ENOSPC, errno.EDQUOT)
_HINT = "send one whole result folder as a tar"
_TOO_LARGE_HINT = "send a result folder with fewer or smaller files"


@dataclass(frozen=True)
class ResultTar:
    """What was packed: its SHA-256 and its size, by which the other side sees that all of it arrived."""

    sha256: str
    size: int


def pack(folder: Path, to: Path) -> ResultTar:
    """Write the folder's files to `to`, sorted, owned by nobody, of no time; on the disk when this returns.

    `to` appears in one step, whole.
    """
    files = bundle_files(folder)
    unfinished = to.with_name(f".{to.name}.tmp")
    with disk_told(to, unfinished):
        with unfinished.open("wb") as out:
            _write(folder, files, out)
            out.flush()
            os.fsync(out.fileno())
        parcel = measure_tar(unfinished)
        unfinished.replace(to)
        sync_folder(to.parent)
    return parcel


def unpack(tar: Path, to: Path, *, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> None:
    """Write the files of a parcel below `to`, which must be new or empty. What is unsafe or damaged is refused.

    When this returns, all of it is on the disk but the name of `to`. On a refusal something may lie in `to` already;
    nothing ever lies outside of it.
    """
    if to.exists() and any(to.iterdir()):
        raise StoreError(f"{to} is not empty", hint="a result is unpacked into an empty folder")
    with disk_told(to), tar.open("rb") as source:
        to.mkdir(parents=True, exist_ok=True)
        _check_count(source, most_files, most_bytes)
        folders = {to}
        for name, size in _members(source, most_files, most_bytes):
            _extract(source, size, to / name, folders)
        for folder in folders:
            sync_folder(folder)


def measure_tar(tar: Path) -> ResultTar:
    """Return the checksum and size of a file."""
    with tar.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return ResultTar(sha256=digest, size=file.tell())


def sync_folder(folder: Path) -> None:
    """Have the folder's own entries on the disk; where the system cannot, the files' are all there is."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Have every file of a folder on the disk, and the folder itself."""
    for path in (*folder.rglob("*"), folder):
        sync_folder(path)


# Out


def _write(folder: Path, files: list[Path], out: IO[bytes]) -> None:
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(files, key=lambda path: path.relative_to(folder).as_posix()):
            name = path.relative_to(folder).as_posix()
            _check_name(name)
            member = tarfile.TarInfo(name)
            member.size, member.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                archive.addfile(member, content)


# In


def _check_count(source: IO[bytes], most_files: int, most_bytes: int) -> None:
    """Read the headers alone, before anything is written: each file costs the disk more than its bytes."""
    for number, _ in enumerate(_members(source, most_files, most_bytes), start=1):
        if number > most_files:
            raise InputError(f"the tar holds more than {most_files} files", hint=_TOO_LARGE_HINT, code="too_large")
    source.seek(0)


def _members(source: IO[bytes], most_files: int, most_bytes: int) -> Iterator[tuple[str, int]]:
    """Yield name and size of each file, with the source at its first byte. Headers alone are read here: a name or an
    extension that claims to be gigabytes long is refused by its size and never taken into memory."""
    seen: set[str] = set()
    total = 0
    for name, size in _plain_files(source, 2 * most_files):
        _check_name(name)
        if name in seen:
            raise _refusal(f"it holds {name} twice")
        seen.add(name)
        total += size
        if size < 0 or total > most_bytes:
            raise InputError(f"the tar holds more than {most_bytes} bytes", hint=_TOO_LARGE_HINT, code="too_large")
        begin = source.tell()
        yield name, size
        source.seek(begin + _pad_size(size))


def _plain_files(source: IO[bytes], most_beside: int) -> Iterator[tuple[str, int]]:
    """Yield each file by the name and size that its own header or an extended one before it says.

    `most_beside` bounds the folders and extended headers, which are no files and cost time all the same."""
    extended: dict[str, str] = {}
    beside = 0
    while (header := _header(source)) is not None:
        beside += not header.isreg()
        if beside > most_beside:
            said = f"the tar holds more than {most_beside} folders and extended headers"
            raise InputError(said, hint=_TOO_LARGE_HINT, code="too_large")
        if header.type in _EXTENSIONS:
            extended |= _read_extension(source, header)
            continue
        name = extended.get("path", header.name)
        size = _read_size(extended["size"]) if "size" in extended else header.size
        _check_kind(header, extended)
        extended = {}
        if header.isdir():
            _check_name(name.rstrip("/"))  # made when a file is in it
        else:
            yield name, size
    if extended:
        raise _refusal("it ends after an extended header, without its file")


def _pad_size(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _read_extension(source: IO[bytes], header: tarfile.TarInfo) -> dict[str, str]:
    """Return what an extended header says of the next file; one about all files says nothing that is needed."""
    if not 0 <= header.size <= _MOST_EXTENSION:
        raise _refusal("one of its extended headers is too long")
    content = source.read(_pad_size(header.size))[: header.size]
    if len(content) < header.size:
        raise _refusal("it is cut short within an extended header")
    try:
        if header.type == tarfile.GNUTYPE_LONGNAME:
            return {"path": content.rstrip(b"\0").decode()}
        return _read_records(content) if header.type == tarfile.XHDTYPE else {}
    except UnicodeDecodeError as exc:
        raise _refusal("one of its names is not UTF-8") from exc


def _read_records(content: bytes) -> dict[str, str]:
    """Return the records of a PAX header, each `LENGTH KEY=VALUE` and the end of a line."""
    found: dict[str, str] = {}
    while content:
        length, _, rest = content.partition(b" ")
        end = int(length) - len(length) - 1 if re.fullmatch(rb"[0-9]{1,9}", length) else 0
        key, equals, value = rest[: max(0, end - 1)].partition(b"=")
        if not equals or rest[end - 1 : end] != b"\n":
            raise _refusal("one of its extended headers is damaged")
        found[key.decode()] = value.decode()
        content = rest[end:]
    return found


def _read_size(text: str) -> int:
    if re.fullmatch("[0-9]{1,18}", text) is None:
        raise _refusal("one of its extended headers is damaged")
    return int(text)


def _header(source: IO[bytes]) -> tarfile.TarInfo | None:
    """Return the next header, None at the end that every archive has: a file that merely stops was cut short."""
    block = source.read(_BLOCK)
    if block == bytes(_BLOCK):
        return None
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as exc:
        raise _refusal(f"it is damaged or cut short: {exc}") from exc


def _check_kind(header: tarfile.TarInfo, extended: Mapping[str, str]) -> None:
    is_link = bool(header.linkname) or "linkpath" in extended
    is_sparse = any(key.startswith("GNU.sparse") for key in extended)
    if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) or is_link or is_sparse:
        raise _refusal(f"{header.name[:200]!r} is not a plain file")


def _check_name(name: str) -> None:
    parts = name.split("/")
    if len(parts) > _DEEPEST or not all(_PART.fullmatch(part) and not part.endswith((" ", ".")) for part in parts):
        raise _refusal(f"{name[:200]!r} is not a valid file name in a result")


def _extract(source: IO[bytes], size: int, path: Path, folders: set[Path]) -> None:
    """Write one file to the disk; `folders` are those that are there, and grow by those that were missing."""
    try:
        if path.parent not in folders:
            path.parent.mkdir(parents=True, exist_ok=True)
            folders.update(takewhile(lambda parent: parent not in folders, path.parents))
        with path.open("xb") as out:
            while size:
                piece = source.read(min(size, _PIECE))
                if not piece:
                    raise _refusal(f"it is cut short within {path.name}")
                out.write(piece)
                size -= len(piece)
            out.flush()
            os.fsync(out.fileno())
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as exc:
        # One name is the folder of another, or the two differ in case only and this system makes no difference.
        raise _refusal(f"{path.name} collides with another of its files") from exc


def _refusal(what: str) -> InputError:
    return InputError(f"the tar is refused: {what}", hint=_HINT, code="damaged")


@contextmanager
def disk_told(place: Path, unfinished: Path | None = None) -> Iterator[None]:
    """Turn what the disk says into a StoreError, `disk_full` where it is; `unfinished` does not stay."""
    try:
        yield
    except (OSError, ValueError) as exc:  # ValueError: a file of 8 GiB or more does not fit in a header
        if unfinished is not None:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
        if getattr(exc, "errno", None) in _FULL:
            hint = "make room on this disk"
            raise StoreError(f"no room for {place}: the disk is full", hint=hint, code="disk_full") from exc
        reason = getattr(exc, "strerror", None) or exc
        raise StoreError(
            f"cannot write {place}: {reason}",
            hint="check that the folder exists, may be written to, and is on no read-only disk",
        ) from exc
