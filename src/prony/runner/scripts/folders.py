"""List, hash and copy script folders, and lay out what scripts may import."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from prony.errors import InputError
from prony.ports.plugins import SHIMS, find_plugins
from prony.runner.checksum import sha256_of

MOST_FILES = 20_000
MOST_BYTES = 512 * 2**20
# Nobody's input: what tools leave beside the files that people write.
LEFT_OUT = {".git", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules"}
_OFFERED = {
    "prony/__init__.py": "prony.shims.package",
    "prony/emit.py": "prony.emit",
}


def files_of(folder: Path) -> list[Path]:
    """Return the files that belong to a folder of scripts, in their order; refuse one that is too large to copy.

    A file stands for a folder with that file alone."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise InputError(
            f"there is no folder or file {folder}", hint="workload.directory names the folder of the script's files",
            code="no_directory",
        )  # fmt: skip
    found, size = [], 0
    for path in _walk(folder):
        found.append(path)
        size += path.stat().st_size
        if len(found) > MOST_FILES or size > MOST_BYTES:
            raise InputError(
                f"{folder} holds more than {MOST_FILES} files or {MOST_BYTES // 2**20} MiB, and every run has a copy",
                hint="name a folder with the scripts alone; data belong into workload.sources",
                code="large_directory",
            )
    return sorted(found)


def check_links(folder: Path) -> None:
    """Refuse a folder with a link that leads out of it: what lies there was never meant to travel."""
    root = folder.resolve()
    for path in _entries(folder):
        if path.is_symlink() and not _target(path).is_relative_to(root):
            raise InputError(
                f"{path} is a link that leads out of {folder}",
                hint="copy what it points to into the folder, remove the link, or name data in workload.sources",
                code="link_outside",
            )


def _target(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a circle: it leads nowhere, and is no file
        return link.parent.resolve()


def _entries(folder: Path) -> Iterator[Path]:
    """Return everything below a folder that belongs to it, links too and not followed."""
    for path in folder.iterdir():
        if path.name in LEFT_OUT:
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _entries(path)


def _walk(folder: Path) -> Iterator[Path]:
    return (path for path in _entries(folder) if path.is_file())


def digest_of(folder: Path, files: list[Path]) -> str:
    """Return `sha256:<hex>` of the names and contents of a folder's files, and of which can be run."""
    lines = "".join(
        f"{sha256_of(path)} {'x' if path.stat().st_mode & 0o100 else '-'} {path.relative_to(folder).as_posix()}\n"
        for path in files
    )
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def root_of(folder: Path) -> Path:
    """Return what the names of its files begin at: of a single file, the folder that it lies in."""
    return folder.parent if folder.is_file() else folder


def copy_files(folder: Path, files: list[Path], to: Path) -> None:
    """Make a fresh copy of a folder. Every file can be run, as those of an archive can: a script in a repository is
    often not marked as a program."""
    for path in files:
        place = to / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
        place.chmod(place.stat().st_mode | 0o111)


def offer(place: Path) -> Path:
    """Lay out what a script may import without installing it; return the folder for PYTHONPATH."""
    shims = {f"{name}/__init__.py": entry.module for name, entry in find_plugins(SHIMS).items()}
    for name, module in (_OFFERED | shims).items():
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(spec.origin, path)
    return place
