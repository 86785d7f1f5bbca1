"""Hold the requests of one run as columns, with marks for those that count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from prony.instruments.window import Window
from prony.ports.driver import Cause
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl

_STAMPS = ("index", "begin_ns", "end_ns", "due_ns", "sent_ns", "first_ns")
_COUNTS = ("bytes_in", "input_tokens", "output_tokens", "content_ns", "items")
_LATER = ("cached_tokens",)  # which older files lack
# All that is looked at.
COLUMNS = ("repetition", "phase", "operation", "cause", "token_ns", "quality", *_STAMPS, *_COUNTS, *_LATER)
UNKNOWN = -1


@dataclass(frozen=True)
class Requests:
    """The requests of one run in the order of the schedule; `numbers` are its columns, UNKNOWN where nothing was told.

    `stamps` are the stamps of every piece with tokens, one reply after the other, and `pieces` how many each has.
    """

    repetition: int
    window: Window
    numbers: Mapping[str, Array]
    cause: Array
    operation: Array
    operations: tuple[str, ...]
    quality: Array
    stamps: Array
    pieces: Array

    @classmethod
    def of(cls, rows: pl.DataFrame, repetition: int, window: Window) -> Self:
        """Take the columns of one repetition out of its rows."""
        numbers = {name: rows[name].to_numpy() for name in _STAMPS}
        numbers |= {name: rows[name].fill_null(UNKNOWN).to_numpy() for name in _COUNTS}
        numbers |= {name: _read_known(rows, name) for name in _LATER}
        names = tuple(sorted(str(name) for name in rows["operation"].unique()))
        lists = rows["token_ns"]
        return cls(
            repetition=repetition, window=window, numbers=numbers,
            cause=rows["cause"].to_physical().to_numpy(),
            operation=_codes(rows["operation"], names), operations=names,
            quality=_qualities(rows["quality"]),
            stamps=lists.explode().drop_nulls().to_numpy(),
            pieces=lists.list.len().fill_null(0).to_numpy().astype(np.int64),
        )  # fmt: skip

    @property
    def count(self) -> int:
        return int(self.cause.size)

    @cached_property
    def successes(self) -> Array:
        good: Array = self.cause == Cause.OK
        return good

    @cached_property
    def began_in_window(self) -> Array:
        """Those that were due (open) or sent (closed) in the window, however they ended."""
        begins = self.numbers["begin_ns"]
        inside: Array = (begins >= self.window.begin_ns) & (begins < self.window.end_ns)
        return inside

    @cached_property
    def latency_rows(self) -> Array:
        """Those that count for latency: successes that began in the window, whenever they ended."""
        both: Array = self.began_in_window & self.successes
        return both

    @cached_property
    def throughput_rows(self) -> Array:
        """Those that count for throughput: successes that ended in the window, whenever they began."""
        ends = self.numbers["end_ns"]
        inside: Array = self.successes & (ends > self.window.begin_ns) & (ends <= self.window.end_ns)
        return inside

    @cached_property
    def is_open(self) -> bool:
        """Do latencies begin when a request was due? Then some were sent a little after."""
        sent = self.numbers["sent_ns"]
        return bool(np.any((sent > 0) & (self.numbers["begin_ns"] != sent)))

    @cached_property
    def first_stamps(self) -> Array:
        """When the first piece with a token came; UNKNOWN where none did."""
        found: Array = np.full(self.count, UNKNOWN, dtype=np.int64)
        some = self.pieces > 0
        found[some] = self.stamps[(np.cumsum(self.pieces) - self.pieces)[some]]
        return found

    def of_operation(self, code: int) -> Array:
        mine: Array = self.operation == code
        return mine


def _read_known(rows: pl.DataFrame, name: str) -> Array:
    """Return a column, or UNKNOWN of all where there is none; that takes no room."""
    if name not in rows.columns or rows[name].null_count() == rows.height:
        return np.broadcast_to(np.int32(UNKNOWN), rows.height)
    numbers: Array = rows[name].fill_null(UNKNOWN).to_numpy()
    return numbers


def _qualities(told: pl.Series) -> Array:
    """Return the qualities as numbers; where nobody judged any, that takes no room."""
    if told.null_count() == len(told):
        return np.broadcast_to(np.float64("nan"), len(told))
    numbers: Array = told.cast(float).fill_null(float("nan")).to_numpy()
    return numbers


def _codes(operations: pl.Series, names: tuple[str, ...]) -> Array:
    import polars as pl

    if len(names) == 1:
        return np.broadcast_to(np.uint8(0), len(operations))
    codes: Array = operations.cast(pl.String).cast(pl.Enum(names)).to_physical().to_numpy()
    return codes
