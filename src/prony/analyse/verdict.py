"""Make a verdict of the reasons that rules gave: the worst decides."""

from __future__ import annotations

from collections.abc import Iterable

from prony.model.estimate import Grade, Reason, Verdict

_WORST_FIRST = (Grade.VOID, Grade.SUSPECT, Grade.VALID)


def verdict_of(reasons: Iterable[Reason]) -> Verdict:
    """Return the verdict that these reasons make: the worst decides."""
    ordered = sorted(reasons, key=lambda reason: _WORST_FIRST.index(reason.grade))
    return Verdict(grade=ordered[0].grade if ordered else Grade.VALID, reasons=tuple(ordered))
