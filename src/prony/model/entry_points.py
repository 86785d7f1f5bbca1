"""Read the entry points of the installed packages: all of them once, because a process asks for many groups."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Protocol


class _Installed(Protocol):
    """What `entry_points` returns, whichever type a Python has for it."""

    def select(self, *, group: str) -> EntryPoints: ...


@cache
def find_entry_points(group: str) -> dict[str, EntryPoint]:
    """Return every entry point of a group by its name, in the order of the names."""
    return {entry.name: entry for entry in sorted(_read_installed().select(group=group), key=lambda entry: entry.name)}


def forget_entry_points() -> None:
    """Read the installed packages again when a group is next asked for: the folders of modules have changed."""
    find_entry_points.cache_clear()
    _read_installed.cache_clear()


@cache
def _read_installed() -> _Installed:
    return entry_points()
