"""The samples of a load in, the requests of each run with the marks of which of them count out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from prony.measure.window import Window, window_of
from prony.model.load import Load
from prony.model.result import Repetition
from prony.ports.driver import Cause
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl

_STAMPS = ("index", "begin_ns", "end_ns", "due_ns", "sent_ns", "first_ns", "bytes_in", "lag_ns")
_COUNTS = ("input_tokens", "output_tokens", "content_ns", "items")
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
        names = tuple(sorted(str(name) for name in rows["operation"].unique()))
        lists = rows["token_ns"]
        return cls(
            repetition=repetition, window=window, numbers=numbers,
            cause=rows["cause"].to_physical().to_numpy(),
            operation=_codes(rows["operation"], names), operations=names,
            quality=rows["quality"].cast(float).fill_null(float("nan")).to_numpy(),
            stamps=lists.explode().drop_nulls().to_numpy(),
            pieces=lists.list.len().fill_null(0).to_numpy().astype(np.int64),
        )  # fmt: skip

    @property
    def count(self) -> int:
        return int(self.cause.size)

    @cached_property
    def succeeded(self) -> Array:
        good: Array = self.cause == Cause.OK
        return good

    @cached_property
    def begun(self) -> Array:
        """Those that were due (open) or sent (closed) in the window, however they ended."""
        begins = self.numbers["begin_ns"]
        inside: Array = (begins >= self.window.begin_ns) & (begins < self.window.end_ns)
        return inside

    @cached_property
    def timed(self) -> Array:
        """Those that count for latency: successes that began in the window, whenever they ended."""
        both: Array = self.begun & self.succeeded
        return both

    @cached_property
    def ended(self) -> Array:
        """Those that count for throughput: successes that ended in the window, whenever they began."""
        ends = self.numbers["end_ns"]
        inside: Array = self.succeeded & (ends > self.window.begin_ns) & (ends <= self.window.end_ns)
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


def runs_of(samples: pl.DataFrame, load: Load, repetitions: Iterable[Repetition]) -> dict[int, Requests]:
    """Return the runs that have requests, by repetition, each with its window."""
    known = {repetition.index: repetition for repetition in repetitions}
    found = {}
    for rows in _by_repetition(samples):
        repetition = int(rows["repetition"][0])
        begins, ends = rows["begin_ns"].to_numpy(), rows["end_ns"].to_numpy()
        succeeded = rows["cause"].to_physical().to_numpy() == Cause.OK
        window = window_of(begins, ends, succeeded, load, known.get(repetition))
        found[repetition] = Requests.of(rows, repetition, window)
    return found


def _by_repetition(samples: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the requests of each run in their order. One that is in order already is not copied: it may be large."""
    import polars as pl

    others = samples["phase"].cast(pl.String).is_in(["load", "first"])
    taken = samples.filter(~others) if others.any() else samples
    index = taken["index"].to_numpy()
    if taken["repetition"].n_unique() == 1 and bool(np.all(index[1:] > index[:-1])):
        return [taken]
    return taken.sort("repetition", "index", "begin_ns", "end_ns").partition_by("repetition", maintain_order=True)


def _codes(operations: pl.Series, names: tuple[str, ...]) -> Array:
    import polars as pl

    codes: Array = operations.cast(pl.String).cast(pl.Enum(names)).to_physical().to_numpy()
    return codes
