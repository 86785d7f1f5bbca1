"""Find out which units an engine has on this machine."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from prony.errors import CapacityError
from prony.runner.child.wire import ChildOrder
from prony.runner.engines import interpreter
from prony.runner.host import EngineHost, Watch

_TIMEOUT_NS = 120 * 10**9


def require_unit(name: str, unit: str, engines: Path) -> tuple[str, ...]:
    """Return the units of an engine that is installed here and has this one.

    Raises:
        CapacityError: It says what is missing, and how to get it.
    """
    known = _find_units(name, interpreter(name, engines))
    # The first of several needs no number, and a card's own name behind the unit is for the engine to find.
    kind = unit.partition(":")[0]
    if not {unit, kind, f"{unit}-0", f"{unit}.0", f"{kind}-0", f"{kind}.0"} & set(known):
        raise CapacityError(
            f"{name} has no unit {unit!r} on this machine", hint=f"available: {', '.join(known)}",
            code="unit_unavailable",
        )  # fmt: skip
    return known


# Jobs of one recipe mostly differ in other things, and an engine takes seconds to import. A failure is not kept.
@cache
def _find_units(name: str, python: str) -> tuple[str, ...]:
    with (
        tempfile.TemporaryDirectory(prefix="prony-") as scratch,
        EngineHost(name, python, Path(scratch) / "probe.log") as host,
    ):
        answer = host.perform(ChildOrder(op="probe"), Watch(timeout_ns=_TIMEOUT_NS))
    if answer.done is None:
        reason = answer.failure.message if answer.failure else "no answer"
        raise CapacityError(f"{name} is broken: {reason}", hint=f"prony engines add {name}", code="engine_broken")
    return tuple(unit["name"] for unit in answer.done["info"]["units"])
