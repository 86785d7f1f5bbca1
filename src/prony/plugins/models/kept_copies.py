"""Copies of local model files by content, so that a file that was replaced can be run once more."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from prony.plugins.models.formats import companion_names
from prony.runner.checksum import checksum, is_right

# A change is confirmed against a version of at most so many results before, and each of them may be another.
_MOST_VERSIONS = 8


class KeptCopies:
    """`kept/<hash of the path>/<sha256>/<name>`: the last versions of one model file."""

    def __init__(self, cache: Path, path: Path) -> None:
        self._folder = cache / "kept" / hashlib.sha256(os.fsencode(path)).hexdigest()
        self._name = path.name

    def find(self, expected: str) -> tuple[Path, ...] | None:
        """Return the files whose checksum this is, hashed again now."""
        main = self._folder / expected.removeprefix("sha256:") / self._name
        if not main.is_file():
            return None
        files = (main, *(main.parent / name for name in companion_names(main)))
        return files if all(one.is_file() for one in files) and is_right(files, expected) else None

    def add(self, files: Sequence[Path]) -> None:
        """Copy this version, in one step, and forget the oldest; one that is kept already is only marked as used."""
        place = self._folder / checksum(files).removeprefix("sha256:")
        if place.is_dir():
            os.utime(place)
            return
        coming = self._folder / f".{uuid.uuid4().hex}"
        try:
            for path in files:
                copy = coming / path.relative_to(files[0].parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
            coming.rename(place)
        finally:
            shutil.rmtree(coming, ignore_errors=True)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        kept = sorted(self._folder.glob("[!.]*"), key=lambda one: one.stat().st_mtime_ns)
        for one in kept[:-_MOST_VERSIONS]:
            shutil.rmtree(one, ignore_errors=True)
