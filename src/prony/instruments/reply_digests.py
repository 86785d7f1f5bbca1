"""Keep the digests of a run's replies as compact columns of numbers."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from prony.ports.driver import Digest

Array = np.ndarray[Any, np.dtype[Any]]

NUMBERS = ("input_tokens", "output_tokens", "reasoning_tokens", "content_ns", "quality")


class Digests:
    """The digests of one run, row by row of its records; only told where somebody looked.

    Texts are not kept: no column is made of them, and they would hold every reply in memory.
    """

    def __init__(self) -> None:
        self._rows = array("q")
        self._causes = array("B")
        self._items = array("q")
        self._numbers = {name: _Column("d" if name == "quality" else "q") for name in NUMBERS}
        self._stamps = array("q")
        self._stamp_counts = array("q")

    def add(self, row: int, digest: Digest) -> None:
        self._rows.append(row)
        self._causes.append(digest.cause)
        self._items.append(digest.items)
        for name, column in self._numbers.items():
            column.add(getattr(digest, name))
        stamps = () if digest.token_ns is None else digest.token_ns
        self._stamp_counts.append(len(stamps))
        self._stamps.frombytes(np.asarray(stamps, np.int64).tobytes())

    @property
    def rows(self) -> Array:
        return np.asarray(self._rows)

    @property
    def causes(self) -> Array:
        return np.asarray(self._causes)

    @property
    def items(self) -> Array:
        return np.asarray(self._items)

    def numbers(self, name: str) -> tuple[Array, Array]:
        """Return a number for each row that was looked at, and whether there is one."""
        column = self._numbers[name]
        return np.asarray(column.values), np.frombuffer(column.has, bool)

    def stamps(self) -> tuple[Array, Array]:
        """Return the stamps of all tokens, and how many of them are each row's."""
        return np.asarray(self._stamps), np.asarray(self._stamp_counts)


class _Column:
    def __init__(self, kind: str) -> None:
        self.values: array[Any] = array(kind)
        self.has = bytearray()

    def add(self, value: float | None) -> None:
        self.values.append(0 if value is None else value)
        self.has.append(value is not None)
