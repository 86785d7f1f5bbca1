"""The seam for model sources: a reference in a recipe in, files on this disk out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

# Called with (bytes done, bytes in all or None) while something long happens.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class ModelFiles:
    """A model on disk. `files` holds every file it needs, the main one first. Never written to by a reader."""

    path: Path
    files: tuple[Path, ...]


@dataclass(frozen=True)
class FetchOptions:
    """`formats` are the endings that the chosen engine loads, most wanted first."""

    cache: Path
    formats: tuple[str, ...]
    checksum: str | None = None
    max_bytes: int = 20 * 2**30
    timeout_s: float = 60.0
    # The recipe's own folder: a relative path in a recipe is relative to it.
    base: Path = Path()
    # The interpreter of the chosen engine: a source that builds a model in that engine's format runs it there.
    python: str = ""


def scheme_of(reference: str) -> str:
    """Return the source that a reference names; a plain path is a `file`. One letter is a Windows drive."""
    match = re.match(r"^([a-z][a-z0-9+]+):", reference)
    scheme = match[1] if match else "file"
    return "https" if scheme == "http" else scheme


class ModelSource(Protocol):
    """Turns one kind of reference into files."""

    scheme: ClassVar[str]

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        """Return the files, from the cache where possible. A damaged or wrong file is never returned."""
