"""Read the names of compute units: `cuda`, `cuda-1`, `cuda:GPU-9292ab31`."""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"(.+)[.-](\d+)")


def split_unit(unit: str) -> tuple[str, str | None]:
    """Return a unit without its card, and the beginning of the card's UUID where it names one."""
    kind, _, card = unit.partition(":")
    return kind, f"GPU-{card.removeprefix('GPU-')}" if card else None


def unit_aliases(unit: str) -> tuple[str, ...]:
    """Return the names that an engine may have for a unit, its own first.

    The first of several units of a kind is meant where no number is given, and the only one is also number 0. A card's
    UUID is left out: any unit of its kind may be that card.
    """
    kind, _ = split_unit(unit)
    found = _NUMBERED.fullmatch(kind)
    if kind == "cpu" or (found and found[2] != "0"):
        return (kind,)
    bare = found[1] if found else kind
    return tuple(dict.fromkeys((kind, bare, f"{bare}-0", f"{bare}.0")))


def unit_number(unit: str) -> tuple[str, int | None]:
    """Return the kind of a unit and its number among several, None where it has none."""
    found = _NUMBERED.fullmatch(split_unit(unit)[0])
    return (found[1], int(found[2])) if found else (split_unit(unit)[0], None)
