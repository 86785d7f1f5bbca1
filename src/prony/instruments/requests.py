"""Build and read the rows of a load's `samples.parquet`.

The digests of a run's replies are kept as compact columns of numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prony.instruments.samples import SAMPLE_PHASES, SAMPLES, read_frame
from prony.ports.driver import Cause, Digest

if TYPE_CHECKING:
    import polars as pl


Array = np.ndarray[Any, np.dtype[Any]]

NUMBERS = ("input_tokens", "output_tokens", "reasoning_tokens", "content_ns", "quality", "cached_tokens")


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


# Those that a repetition goes through, and what is on its way when nothing more is sent.
REQUEST_PHASES = (*SAMPLE_PHASES, "drain")
CAUSES = tuple(cause.name.lower() for cause in Cause)
OK = CAUSES[Cause.OK]


@cache
def request_schema() -> dict[str, Any]:
    """Return the columns of one request, in order, with their types; a function because polars is heavy to import."""
    import polars as pl

    return {
        "repetition": pl.Int32, "index": pl.Int32, "phase": pl.Enum(REQUEST_PHASES),
        "begin_ns": pl.Int64, "end_ns": pl.Int64, "due_ns": pl.Int64, "sent_ns": pl.Int64, "first_ns": pl.Int64,
        "operation": pl.Categorical, "cause": pl.Enum(CAUSES), "status": pl.Int16, "bytes_in": pl.Int64,
        "lag_ns": pl.Int64, "client": pl.Int16, "input_tokens": pl.Int32, "output_tokens": pl.Int32,
        "reasoning_tokens": pl.Int32, "content_ns": pl.Int64, "token_ns": pl.List(pl.Int64), "items": pl.Int32,
        "quality": pl.Float32, "cached_tokens": pl.Int32,
    }  # fmt: skip


@dataclass(frozen=True)
class Taken:
    """One run of a load: `records` by their names, `operations` and `items` by the position of a prepared request.

    `is_open`: latencies begin when a request was due, else when it was sent. `window_ns` is the part that counts.
    """

    repetition: int
    records: Mapping[str, Array]
    operations: Sequence[str]
    is_open: bool
    window_ns: tuple[int, int]
    digests: Digests = field(default_factory=Digests)
    items: Sequence[int] = (1,)


def request_frame(taken: Taken) -> pl.DataFrame:
    """Return one row a request, all of them, in the order of the schedule."""
    import polars as pl

    records = taken.records
    count = records["index"].size
    begins = begin_ns(records, is_open=taken.is_open)
    causes, schema = _causes(taken), request_schema()
    columns: dict[str, Any] = {
        "repetition": np.full(count, taken.repetition), "index": records["index"],
        "phase": _words(REQUEST_PHASES, phases(begins, records["end_ns"], taken.window_ns), schema["phase"]),
        "begin_ns": begins, "cause": _words(CAUSES, causes, schema["cause"]), "operation": _operations(taken),
        "client": records["client"] if "client" in records else np.zeros(count, dtype=np.int16),
        "status": np.clip(records["status"], -(2**15), 2**15 - 1),
    }  # fmt: skip
    columns |= {name: records[name] for name in ("end_ns", "due_ns", "sent_ns", "first_ns", "bytes_in", "lag_ns")}
    columns |= _digest_columns(taken, count)
    # A column at a time, so that there are never two copies of all.
    frame = pl.DataFrame([_series(name, columns.pop(name)) for name in schema])
    return frame if frame["index"].is_sorted() else frame.sort("index", maintain_order=True)


def begin_ns(records: Mapping[str, Array], *, is_open: bool) -> Array:
    """Return where the latency of each request begins; what was never sent begins when it was due."""
    sent, due = records["sent_ns"], records["due_ns"]
    began: Array = due if is_open else np.where(sent > 0, sent, due)
    return began


def phases(begins: Array, ends: Array, window_ns: tuple[int, int]) -> Array:
    """Return the position in REQUEST_PHASES of each request; it is `measure` where all of it lies in the window."""
    begin, end = window_ns
    found: Array = np.full(begins.size, REQUEST_PHASES.index("measure"), dtype=np.uint8)
    found[(begins >= end) | (ends > end)] = REQUEST_PHASES.index("drain")
    found[begins < begin] = REQUEST_PHASES.index("warmup")
    return found


def empty_frame() -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(schema=request_schema())


def is_requests(frame: pl.DataFrame) -> bool:
    """Are these the samples of a load, rather than inferences?"""
    return "cause" in frame.columns


def read_requests(folder: Path) -> pl.DataFrame:
    """Read the requests of a result folder."""
    return read_frame(folder, SAMPLES)


def join_runs(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the runs of one job in one frame."""
    import polars as pl

    listed = list(frames)
    return pl.concat(listed) if listed else empty_frame()


def _causes(taken: Taken) -> Array:
    """Return the cause of each request: the wire's, unless that is none and the digest found one."""
    causes: Array = taken.records["cause"].astype(np.uint8)
    rows, told = taken.digests.rows, taken.digests.causes
    good = causes[rows] == Cause.OK
    causes[rows[good]] = told[good]
    return causes


def _operations(taken: Taken) -> pl.Series:
    names = list(dict.fromkeys(taken.operations)) or ["request"]
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place[name] for name in taken.operations] or [0], dtype=np.uint32)
    return _words(names, codes[taken.records["request"] % codes.size], request_schema()["operation"])


def _words(names: Sequence[str], codes: Array, kind: Any) -> pl.Series:
    """Return the name at each position; `kind` is the type that holds each name once."""
    import polars as pl

    return pl.Series(names, dtype=kind)[codes]  # `gather` would bring in the whole query engine


def _series(name: str, values: Any) -> pl.Series:
    """Return a column in its own type."""
    import polars as pl

    series = values if isinstance(values, pl.Series) else pl.Series(values)
    kind = request_schema()[name]
    return series.alias(name) if series.dtype == pl.List(pl.Int64) else series.cast(kind).alias(name)


def _digest_columns(taken: Taken, count: int) -> dict[str, pl.Series]:
    """Return the columns that only a digest can fill, null where none did; items are the request's unless told."""
    import polars as pl

    digests = taken.digests
    found = {name: _numbers(digests, name, count) for name in NUMBERS}
    each = np.asarray(taken.items or (1,), dtype=np.int32)
    items = each[taken.records["request"] % each.size]
    items[digests.rows] = digests.items
    return found | {"items": pl.Series(items), "token_ns": _lists(digests, count)}


def _numbers(digests: Digests, name: str, count: int) -> pl.Series:
    """Return one number a row; null where none was told."""
    import polars as pl

    values, has = digests.numbers(name)
    if not has.any():
        return pl.Series([None], dtype=request_schema()[name]).new_from_index(0, count)
    known = np.zeros(count, dtype=bool)
    known[digests.rows] = has
    placed = np.zeros(count, dtype=values.dtype)
    placed[digests.rows] = values
    return pl.Series(placed).cast(request_schema()[name]).set(~pl.Series(known), None)


def _lists(digests: Digests, count: int) -> pl.Series:
    """Return the stamps of each row as a list; null where a row has none."""
    import polars as pl

    stamps, counts = digests.stamps()
    if not stamps.size:
        return pl.Series([None], dtype=pl.List(pl.Int64)).new_from_index(0, count)
    if stamps.size == count and bool(np.all(counts == 1)):  # replies that came whole
        return pl.Series(stamps).reshape((count, 1)).cast(pl.List(pl.Int64))
    flat = pl.DataFrame({"row": np.repeat(digests.rows, counts), "token_ns": stamps})
    lists = flat.group_by("row", maintain_order=True).agg("token_ns")
    return pl.DataFrame({"row": np.arange(count)}).join(lists, on="row", how="left", maintain_order="left")["token_ns"]
