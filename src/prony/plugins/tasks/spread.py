"""Parse a length distribution such as `uniform 128:512`, and draw lengths from it.

`256`, `uniform 128:512`, `normal 256:64` or `lognormal 256:64`. Two numbers are the lowest and the highest of
`uniform`; of the others, the mean and the standard deviation of the lengths themselves. What chance would make shorter
than 1 is 1.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, WithJsonSchema

Lengths = np.ndarray[Any, np.dtype[np.int64]]
_LONGEST = 10_000_000
_NUMBER = r"([0-9]{1,8}(?:\.[0-9]{1,6})?)"
_PATTERN = rf"^(?:(?:constant )?[0-9]{{1,8}}|(?:uniform|normal|lognormal) {_NUMBER}:{_NUMBER})$"
_WORDS = re.compile(rf"(?:(constant|uniform|normal|lognormal) )?{_NUMBER}(?::{_NUMBER})?")


def _check_spread(value: Any) -> str:
    """Return the text of a spread that can be drawn from."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if re.fullmatch(_PATTERN, text) is None:
        raise ValueError("write a length such as 256, `uniform 128:512`, `normal 256:64` or `lognormal 256:64`")
    kind, first, second = _parts(text)
    if not 1 <= first <= _LONGEST or second > _LONGEST:
        raise ValueError(f"lengths must be between 1 and {_LONGEST}")
    if kind == "uniform" and (second < first or first % 1 or second % 1):
        raise ValueError("uniform needs two whole numbers, the lower first")
    return text


def _parts(text: str) -> tuple[str, float, float]:
    match = _WORDS.fullmatch(text)
    assert match is not None  # the text has been checked
    return match[1] or "constant", float(match[2]), float(match[3] or 0)


Spread = Annotated[
    str,
    BeforeValidator(_check_spread),
    WithJsonSchema({"type": ["string", "integer"], "pattern": _PATTERN, "examples": [256, "uniform 128:512"]}),
]


def draw_lengths(spread: str, count: int, rng: np.random.Generator) -> Lengths:
    """Return so many lengths; the first of them are the same whatever the count."""
    kind, first, second = _parts(spread)
    if kind == "uniform":
        return rng.integers(int(first), int(second), size=count, endpoint=True)
    if kind == "constant":
        return np.full(count, int(first), dtype=np.int64)
    noise = rng.standard_normal(count)
    if kind == "normal":
        values = first + second * noise
    else:
        variance = np.log1p((second / first) ** 2)
        values = first * np.exp(np.sqrt(variance) * noise - variance / 2)
    return np.clip(np.rint(values), 1, _LONGEST).astype(np.int64)


def lengths_or(lengths: Lengths | None, column: int, instead: Lengths) -> Lengths:
    """Return the lengths of a trace, and others where it does not tell them."""
    if lengths is None:
        return instead
    given = np.asarray(lengths, dtype=np.int64)[: len(instead), column]
    merged = instead.copy()
    merged[: len(given)] = np.where(given > 0, given, instead[: len(given)])
    return merged
