"""Fill text templates with placeholders, differently for each request.

`{seq}` counts from 0, `{random_hex:16}` has so many digits, `{random_int:1:100}` lies between both, `{choice:a|b}` is
one of them, `{uuid}` is a random one. Other braces stay what they are, so that JSON needs no quoting.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import numpy as np

from prony.errors import InputError

_PLACE = re.compile(r"\{(seq|random_hex|random_int|choice|uuid)(?::([^{}]*))?\}")
Fill = Callable[[int, np.random.Generator], str]


class Template:
    """A text whose placeholders are looked at once."""

    def __init__(self, text: str) -> None:
        parts = _PLACE.split(text)
        self._fixed = parts[::3]
        self._fills = [_fill(name, given) for name, given in zip(parts[1::3], parts[2::3], strict=True)]

    @property
    def varies(self) -> bool:
        return bool(self._fills)

    def fill(self, number: int, rng: np.random.Generator) -> str:
        """Return the text of one request: the `number`-th, with what chance gives it."""
        pieces = [self._fixed[0]]
        for fill, fixed in zip(self._fills, self._fixed[1:], strict=True):
            pieces += (fill(number, rng), fixed)
        return "".join(pieces)


def _fill(name: str, given: str | None) -> Fill:
    if name == "seq":
        return lambda number, _: str(number)
    if name == "uuid":
        return lambda _, rng: str(uuid.UUID(bytes=rng.bytes(16), version=4))
    if name == "choice":
        words = (given or "").split("|")
        return lambda _, rng: words[int(rng.integers(len(words)))]
    if name == "random_hex":
        (digits,) = _numbers(name, given, 1, "16")
        return lambda _, rng: rng.bytes((digits + 1) // 2).hex()[:digits]
    low, high = _numbers(name, given, 2, "1:100")
    if low > high:
        raise InputError(f"{{{name}:{given}}} has its end before its start", hint=f"write {{{name}:1:100}}")
    return lambda _, rng: str(rng.integers(low, high, endpoint=True))


def _numbers(name: str, given: str | None, count: int, usual: str) -> list[int]:
    words = (given or "").split(":")
    if len(words) != count or not all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in words):
        raise InputError(f"{{{name}}} needs {count} whole number(s)", hint=f"write {{{name}:{usual}}}")
    return [int(word) for word in words]
