"""Text as people write it in, numbers out: durations (`60s`), sizes (`2GiB`) and shares (`2%`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_NUMBER = r"(\d+(?:\.\d+)?)"
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
_DURATION_PATTERN = rf"^{_NUMBER}\s*({'|'.join(_DURATION_NS)})$"
_SIZE_PATTERN = rf"^{_NUMBER}\s*({'|'.join(_SIZE_BYTES)})$"
_SHARE_PATTERN = rf"^{_NUMBER}\s*%$"


def _scaled(pattern: str, factors: dict[str, int], example: str) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return value  # already in the base unit: what we serialise ourselves
        match = re.match(pattern, value.strip()) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"write a number with its unit, like {example}, not {value!r}")
        return round(float(match[1]) * factors[match[2]])

    return parse


def _share(value: Any) -> Any:
    if isinstance(value, float):
        return value
    match = re.match(_SHARE_PATTERN, value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"write a share as a percentage, like 2%, not {value!r}")
    return float(match[1]) / 100


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


def _share_text(value: float) -> str:
    return f"{value * 100:.12g}%"


DurationNs = Annotated[
    int,
    BeforeValidator(_scaled(_DURATION_PATTERN, _DURATION_NS, "60s or 5m")),
    Field(gt=0),
    PlainSerializer(duration_text),
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN, "examples": ["60s", "5m"]}),
]
SizeBytes = Annotated[
    int,
    BeforeValidator(_scaled(_SIZE_PATTERN, _SIZE_BYTES, "512MiB or 2GiB")),
    Field(gt=0),
    PlainSerializer(size_text),
    WithJsonSchema({"type": "string", "pattern": _SIZE_PATTERN, "examples": ["512MiB", "2GiB"]}),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    Field(gt=0, lt=1),
    PlainSerializer(_share_text),
    WithJsonSchema({"type": "string", "pattern": _SHARE_PATTERN, "examples": ["2%"]}),
]
