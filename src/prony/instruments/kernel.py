"""Read small files of /proc and /sys as text and numbers; None for what cannot be read.

Every reader takes a path, so that a test can point it at files of its own. Needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ROOT = Path("/")


def read_text(path: Path) -> str | None:
    """Return the file's text without surrounding blanks and NULs (device trees end strings with them)."""
    try:
        return path.read_bytes().decode("utf-8", "replace").strip(" \t\r\n\0")
    except OSError:
        return None


def number(path: Path) -> int | None:
    """Return the file's one integer."""
    return integer(read_text(path))


def integer(word: str | None) -> int | None:
    """Return a decimal or 0x integer, or None for anything else."""
    if word is None:
        return None
    try:
        return int(word, 0)
    except ValueError:
        return None


def read_table(path: Path) -> dict[str, int]:
    """Return a file of `name number` lines (vmstat, cpu.stat, meminfo), a unit after the number passed over."""
    found: dict[str, int] = {}
    for line in (read_text(path) or "").splitlines():
        words = line.split()
        value = integer(words[1]) if len(words) > 1 else None
        if value is not None:
            found[words[0].rstrip(":")] = value
    return found


def read_some_lines(path: Path, *names: str) -> dict[str, int]:
    """Return some lines of such a file where it is long and read often: the rest is not even looked at."""
    content = "\n" + (read_text(path) or "")
    found: dict[str, int] = {}
    for name in names:
        _, there, rest = content.partition(f"\n{name} ")
        value = integer(rest.partition("\n")[0].strip()) if there else None
        if value is not None:
            found[name] = value
    return found


def cpu_list(words: str | None) -> tuple[int, ...]:
    """Return the numbers in a kernel list such as `0-3,8`; nothing for an empty or damaged one."""
    found: list[int] = []
    for part in (words or "").replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def folders(path: Path, pattern: str) -> tuple[Path, ...]:
    """Return what matches under a folder, in the order of the numbers in its name; nothing where it is absent."""
    try:
        return tuple(sorted(path.glob(pattern), key=_natural))
    except OSError:
        return ()


def first(values: Iterable[str | None]) -> str | None:
    """Return the first text that says something."""
    return next((value for value in values if value), None)


def _natural(path: Path) -> tuple[str, int]:
    stem = path.name.rstrip("0123456789")
    return stem, int(path.name[len(stem) :] or 0)
