"""Compute and verify the checksums of an export's files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import Field

from prony import __version__
from prony.errors import InputError, StoreError
from prony.model.base import Noun

MANIFEST = "MANIFEST.json"


class Manifest(Noun):
    """What an export holds: its jobs in order, which attempt of each, and the SHA-256 of every file by its path."""

    version: int = 1
    prony_version: str = __version__
    experiment_id: str
    jobs: tuple[str, ...] = ()
    attempts: dict[str, int] = Field(default={})
    files: dict[str, str]


def files_of(folder: Path) -> list[Path]:
    """Return every file below a folder, sorted; a link or a device is refused, a hidden file passed over."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue  # left by the system's file browser
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise InputError(f"{path} is not a plain file", hint="a result folder holds plain files and folders only")
        found += files_of(path) if path.is_dir() else [path]
    return found


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file, by its path from `folder` with forward slashes."""
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in files_of(folder)}


def verify(folder: Path, manifest: Manifest) -> None:
    """Say which file is missing, damaged or not part of what was exported."""
    hint = "copy the export again from where it was made"
    found = checksums(folder)
    found.pop(MANIFEST, None)
    for name, wanted in manifest.files.items():
        if name not in found:
            raise StoreError(f"{folder} lacks {name}, which {MANIFEST} names", hint=hint)
        if found[name] != wanted:
            raise StoreError(f"{folder / name} is damaged: its checksum is not the one in {MANIFEST}", hint=hint)
    for name in found.keys() - manifest.files.keys():
        raise StoreError(f"{folder / name} is not named in {MANIFEST}", hint="remove it, or copy the export again")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
