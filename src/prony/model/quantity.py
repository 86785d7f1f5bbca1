"""Parse and format durations (`60s`), sizes (`2GiB`) and shares (`2%`).

A bare number is refused everywhere: nobody can tell 60 seconds from 60 nanoseconds. What Prony writes itself is text
too, so that a job or a recipe reads the same after a trip through JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, NoReturn

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter, ValidationError, WithJsonSchema

from prony.errors import InputError

_NUMBER = r"([0-9]{1,20}(?:\.[0-9]{1,20})?)"
_DURATION_NS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_SIZE_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_DURATION_PATTERN = rf"^{_NUMBER} ?({'|'.join(_DURATION_NS)})$"
_SIZE_PATTERN = rf"^{_NUMBER} ?({'|'.join(_SIZE_BYTES)})$"
# Any count of digits: the text of a float that is nearly nothing is long.
_SHARE_PATTERN = r"^([0-9]+(?:\.[0-9]+)?) ?%$"
_LARGEST = 2**63 - 1


def _show_value(value: Any) -> str:
    """Return the value as its writer saw it."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _make_parser(pattern: str, factors: dict[str, int], noun: str, usual: str) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        return parse_text(value) if isinstance(value, str) else refuse(value)

    # A server reads the same few defaults with every job.
    @lru_cache(maxsize=256)
    def parse_text(value: str) -> int:
        match = re.fullmatch(pattern, value.strip())
        if match is None:
            refuse(value)
        exact = Fraction(match[1]) * factors[match[2]]
        if not 0 < round(exact) <= _LARGEST:
            raise ValueError(f"{_show_value(value)} is not a valid {noun}")
        return round(exact)

    def refuse(value: Any) -> NoReturn:
        raise ValueError(_advice(value))

    def _advice(value: Any) -> str:
        # 10 and 10 sec are ten of the usual unit; 10 min, 10:00 and true are not.
        shown = _show_value(value)
        bare = not isinstance(value, bool) and re.fullmatch(rf"{_NUMBER}(?: ?{usual}[a-z]*)?", shown, re.IGNORECASE)
        example = f"{bare[1] if bare else 60}{usual}"
        return f"a {noun} needs a unit ({', '.join(factors)}): write {example}, not {shown}"

    return parse


def _share(value: Any) -> float:
    match = re.fullmatch(_SHARE_PATTERN, value.strip()) if isinstance(value, str) else None
    if match is None:
        example = share_text(value) if isinstance(value, float) and 0 < value < 1 else "2%"
        raise ValueError(f"a share is a percentage: write {example}, not {_show_value(value)}")
    # Decimal, because 2.3 / 100 in floats is not 0.023 and the text must come back as it was.
    share = float(Decimal(match[1]) / 100)
    if not 0 < share < 1:
        raise ValueError(f"a share lies between 0% and 100%, both excluded: not {_show_value(value)}")
    return share


def duration_text(value_ns: int) -> str:
    """Return the shortest exact way to write a duration."""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        if value_ns and value_ns % _DURATION_NS[unit] == 0:
            return f"{value_ns // _DURATION_NS[unit]}{unit}"
    return f"{value_ns}ns"


def size_text(value: int) -> str:
    """Return the shortest exact way to write a size."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if value and value % _SIZE_BYTES[unit] == 0:
            return f"{value // _SIZE_BYTES[unit]}{unit}"
    return f"{value}B"


def share_text(value: float) -> str:
    """Return a share as a percentage that reads back as exactly the same float."""
    digits = format((Decimal(repr(value)) * 100).normalize(), "f")
    return f"{digits}%"


DurationNs = Annotated[
    int,
    BeforeValidator(_make_parser(_DURATION_PATTERN, _DURATION_NS, "duration", "s")),
    Field(gt=0),
    PlainSerializer(duration_text),
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN, "examples": ["60s", "5m"]}),
]
SizeBytes = Annotated[
    int,
    BeforeValidator(_make_parser(_SIZE_PATTERN, _SIZE_BYTES, "size", "MiB")),
    Field(gt=0),
    PlainSerializer(size_text),
    WithJsonSchema({"type": "string", "pattern": _SIZE_PATTERN, "examples": ["512MiB", "2GiB"]}),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    Field(gt=0, lt=1),
    PlainSerializer(share_text),
    WithJsonSchema({"type": "string", "pattern": _SHARE_PATTERN, "examples": ["2%"]}),
]


def read_seconds(text: str, option: str, example: str) -> float:
    """Read the duration that an option says, in seconds."""
    try:
        return TypeAdapter[int](DurationNs).validate_python(text) / 10**9
    except ValidationError as exc:
        reason = str(exc.errors()[0]["ctx"]["error"])
        raise InputError(f"{option}: {reason}", hint=f"as in {option} {example}") from exc
