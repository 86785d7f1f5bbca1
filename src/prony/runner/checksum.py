"""Compute and verify the checksum of a model's files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from prony.errors import InputError

_BLOCK_BYTES = 2**20


def sha256_of(path: Path) -> str:
    """Return the hex digest of one file, read in blocks."""
    return _digest(path, "sha256")


def _digest(path: Path, algorithm: str) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def checksum(files: Sequence[Path]) -> str:
    """Return `sha256:<hex>` of a model.

    For one file it is the file's own SHA-256. For several it is that of the lines `<sha256>  <name>`, in the given
    order, with names relative to the innermost folder that holds them all.
    """
    if len(files) == 1:
        return f"sha256:{sha256_of(files[0])}"
    root = Path(os.path.commonpath([path.parent for path in files]))
    lines = "".join(f"{sha256_of(path)}  {path.relative_to(root).as_posix()}\n" for path in files)
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def is_right(files: Sequence[Path], expected: str) -> bool:
    """Tell whether these are the files whose checksum this is: `sha256:` of any, or `md5:` of one."""
    return _like(files, expected) == expected


def verify(files: Sequence[Path], expected: str | None, *, source: str) -> None:
    """Refuse files that are not those whose checksum the recipe gives; None accepts any."""
    if expected is None:
        return
    found = _like(files, expected)
    if found != expected:
        raise InputError(
            f"{source} has the wrong checksum: {found} instead of {expected}",
            hint="if the file was changed on purpose, write the new checksum in the recipe",
            code="checksum_mismatch",
        )


def _like(files: Sequence[Path], expected: str) -> str:
    if not expected.startswith("md5:"):
        return checksum(files)
    return f"md5:{_digest(files[0], 'md5')}" if len(files) == 1 else "unknown, because a folder has no md5"
