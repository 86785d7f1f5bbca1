"""Build the condition of one preflight check from the value that was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from prony.model.device import Condition

Value = float | int | str | None
Status = Literal["pass", "warn", "block", "unknown"]


@dataclass(frozen=True)
class Check:
    """What a check is called, and what to do where it does not pass."""

    code: str
    title: str
    hint: str = ""

    def conclude(self, status: Status, value: str, hint: str | None = None) -> Condition:
        """Return the condition. What passes needs no advice."""
        advice = self.hint if hint is None else hint
        return Condition(
            code=self.code, title=self.title, status=status, value=value, hint="" if status == "pass" else advice
        )

    def unknown(self, why: str) -> Condition:
        return self.conclude("unknown", why, hint="")

    def above(self, value: float, shown: str, *, warn: float, block: float | None = None) -> Condition:
        """Warn above one limit, block above another."""
        if block is not None and value > block:
            return self.conclude("block", shown)
        return self.conclude("warn" if value > warn else "pass", shown)


def number(values: Mapping[str, Value], name: str) -> float | None:
    """Return a value that is a number, or None."""
    value = values.get(name)
    return float(value) if isinstance(value, int | float) else None


def word(values: Mapping[str, Value], name: str) -> str | None:
    """Return a value that is text, or None."""
    value = values.get(name)
    return value if isinstance(value, str) else None
