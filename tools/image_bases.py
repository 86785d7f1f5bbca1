"""Find the images of others that deploy/ names by a tag alone, without a digest.

A tag may point to another image tomorrow, so a release names each image as NAME:TAG@sha256:DIGEST.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# Each file that names images, and the pattern of a name. Prony's own images there have no registry.
PLACES: dict[str, str] = {
    "deploy/Containerfile": r"(?m)^ARG \w+_IMAGE=(\S+)$",
    "deploy/compose.yaml": r"(?m)^ +image: (?:\$\{\w+:-)?([^\s}]+/[^\s}]+)\}?$",
}
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
HOW_TO_PIN = "skopeo inspect --format '{{.Digest}}' docker://IMAGE prints a digest; write IMAGE@DIGEST into the file"


@dataclass(frozen=True)
class NamedImage:
    file: str
    image: str

    @property
    def is_pinned(self) -> bool:
        return _DIGEST.search(self.image) is not None


def read_images(root: Path) -> list[NamedImage]:
    """Return every image of others, with the file that names it; a file without one is an error."""
    found = []
    for file, pattern in PLACES.items():
        names = re.findall(pattern, (root / file).read_text())
        if not names:
            raise ValueError(f"{file} names no image; tools/image_bases.py has the pattern")
        found += [NamedImage(file, name) for name in names]
    return found


def describe_unpinned(root: Path) -> str:
    """Return which images have no digest, and how to give them one; empty where all have one."""
    unpinned = [f"{one.image} in {one.file}" for one in read_images(root) if not one.is_pinned]
    return f"without a digest: {', '.join(unpinned)}; {HOW_TO_PIN}" if unpinned else ""
