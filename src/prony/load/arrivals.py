"""Decide when requests are due: drawn from rates and a seed, or read from a trace.

Gaps are drawn as if one request a unit were due, and the units are then mapped through the inverse of the integrated
rate. That is exact for a rate that changes, in a ramp as well as in a step. Draws are taken one after another from one
generator, so a shorter load is the beginning of a longer one with the same seed.

A trace has one of three layouts. `jsonl`: one object a line, with one of the keys of `TIME_KEYS` and, where they are
known, lengths in tokens under one of `INPUT_KEYS` and `OUTPUT_KEYS`. `mooncake`: the same with `timestamp` in ms and
both lengths on every line; its `hash_ids` are passed over. `burstgpt`: CSV with the columns of that data set, seconds.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from prony.errors import InputError, NotFoundError
from prony.ports.driver import Stamps

Units = np.ndarray[Any, np.dtype[np.float64]]
MOST_REQUESTS = 50_000_000
_CHUNK = 65_536
_YEAR_NS = 31_557_600 * 10**9
_LATEST_NS = 2**62  # 146 years: what a schedule is added to must still fit


@dataclass(frozen=True)
class Gaps:
    """How the gaps between requests are spread: `constant`, `poisson`, or `gamma` with its shape."""

    arrivals: str
    burstiness: float = 1.0


@dataclass(frozen=True)
class RateSegment:
    """A time in which the rate goes in a straight line from one value to another."""

    lasting_s: float
    begin_per_s: float
    end_per_s: float
    gaps: Gaps

    @property
    def mean_requests(self) -> float:
        """How many requests come in it on average."""
        return self.lasting_s * (self.begin_per_s + self.end_per_s) / 2


def count_arrivals(gaps: Gaps, rate: float, count: int, *, seed: int) -> Stamps:
    """Return when so many requests at one rate are due."""
    refuse_too_many(count)
    return in_ns(_units(gaps, until=math.inf, most=count, draws=_generator(seed, 0)) * 1e9 / rate)


def time_arrivals(stretches: Sequence[RateSegment], *, seed: int, most: int | None = None) -> Stamps:
    """Return when requests are due in stretches that follow each other; at most `most` of them."""
    ceiling = MOST_REQUESTS + 1 if most is None else min(most, MOST_REQUESTS + 1)
    refuse_too_many(min(sum(stretch.mean_requests for stretch in stretches), math.inf if most is None else most))
    dues: list[Stamps] = []
    begin_s = 0.0
    for part, (gaps, run) in enumerate(itertools.groupby(stretches, key=lambda stretch: stretch.gaps)):
        together = list(run)
        expected = sum(stretch.mean_requests for stretch in together)
        left = ceiling - sum(map(len, dues))
        units = _units(gaps, until=expected, most=left, draws=_generator(seed, part))
        for stretch in together:
            inside = units[: np.searchsorted(units, stretch.mean_requests)]
            dues.append(_within(stretch, inside, begin_s))
            units = units[inside.size :] - stretch.mean_requests
            begin_s += stretch.lasting_s
    found = np.concatenate(dues) if dues else np.empty(0, np.int64)
    refuse_too_many(found.size)
    return found


def refuse_too_many(count: float) -> None:
    """Refuse a load of more requests than memory should hold."""
    if count > MOST_REQUESTS:
        told = f"the load has {count:,.0f} requests; the limit is {MOST_REQUESTS:,}"
        raise InputError(told, hint="shorten it, or lower its rate")


def in_ns(dues: Units) -> Stamps:
    """Return ascending instants in whole ns; one that is too far off to be counted is refused."""
    if dues.size and not dues[-1] < _LATEST_NS:
        told = f"the last of {dues.size:,} requests is due in {dues[-1] / _YEAR_NS:,.0f} years"
        raise InputError(told, hint="raise the rate, or use fewer requests")
    return np.rint(dues).astype(np.int64)


def _generator(seed: int, part: int) -> np.random.Generator:
    """Return the generator of one part: none depends on how much another has drawn."""
    bits = np.random.PCG64(seed)
    return np.random.Generator(bits.jumped(part) if part else bits)


def _units(gaps: Gaps, *, until: float, most: int, draws: np.random.Generator) -> Units:
    """Return instants below `until` at which one request a unit is due, at most `most` of them."""
    if gaps.arrivals == "constant":
        # A rate times a time may land a hair above the whole number that it means.
        count = most if math.isinf(until) else min(most, math.ceil(round(until, 9)))
        return np.arange(count, dtype=np.float64)
    pieces: list[Units] = []
    at, count = 0.0, 0
    while count < most and at < until:
        size = min(_CHUNK, most - count)
        pieces.append(at + np.cumsum(_drawn(gaps, size, draws)))
        at, count = float(pieces[-1][-1]), count + size
    units = np.concatenate(pieces) if pieces else np.empty(0)
    return units[: np.searchsorted(units, until)]


def _drawn(gaps: Gaps, size: int, draws: np.random.Generator) -> Units:
    """Return gaps of mean one."""
    if gaps.arrivals == "poisson":
        return draws.standard_exponential(size)
    return draws.standard_gamma(gaps.burstiness, size) / gaps.burstiness


def _within(stretch: RateSegment, units: Units, begin_s: float) -> Stamps:
    """Return when the rate of a stretch, summed from its beginning, has reached each unit."""
    slope = (stretch.end_per_s - stretch.begin_per_s) / stretch.lasting_s
    # The root is that of a quadratic, written so that neither a level rate nor one from nothing divides by nothing.
    root = np.sqrt(np.maximum(stretch.begin_per_s**2 + 2 * slope * units, 0.0))
    below = stretch.begin_per_s + root
    after_s = np.divide(2 * units, below, out=np.zeros_like(units), where=below > 0)
    return np.rint((begin_s + np.minimum(after_s, stretch.lasting_s)) * 1e9).astype(np.int64)


# What one of it is in ns. A bare `timestamp` is in ms, as Mooncake's is.
TIME_KEYS = {
    "timestamp": 1e6, "timestamp_ms": 1e6, "time_ms": 1e6, "timestamp_s": 1e9, "time_s": 1e9, "timestamp_ns": 1.0,
}  # fmt: skip
INPUT_KEYS = ("input_length", "input_tokens")
OUTPUT_KEYS = ("output_length", "output_tokens")
_BURSTGPT = ("Timestamp", "Request tokens", "Response tokens")
_MOONCAKE = ("timestamp", "input_length", "output_length")
_ENDLESS = 2**63
_LONGEST = 2**31


@dataclass(frozen=True)
class Trace:
    """Requests in the order of their time, the first at 0; `lengths` are (n, 2) input and output tokens, -1 unknown."""

    layout: str
    dues_ns: Stamps
    lengths: Stamps


def _bad(told: str, hint: str = "") -> InputError:
    return InputError(told, hint=hint, code="bad_trace")


class _Place:
    """Where in a file the reader is, as an error names it; it moves, because a trace may have millions of lines."""

    def __init__(self, path: Path, line: int = 0) -> None:
        self.path = path
        self.line = line

    def wrong(self, told: str, hint: str = "") -> NoReturn:
        raise _bad(f"{self.path}, line {self.line}: {told}", hint)


_Row = tuple[float, float, float]  # ns, input, output


def read_trace(path: Path, *, layout: str = "auto") -> Trace:
    """Read a trace; every mistake in it is told with its file, line and key."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            found = _detect_layout(path, lines) if layout == "auto" else layout
            lines.seek(0)
            rows = _collect(_READERS[found](_Place(path), lines))
    except FileNotFoundError as exc:
        raise NotFoundError(f"trace not found: {path}", hint="the path is relative to the recipe's folder") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise _bad(f"{path} cannot be read as text: {exc}") from exc
    if not rows.size:
        raise _bad(f"{path} has no requests")
    refuse_too_many(len(rows))
    times, lengths = rows[:, 0], rows[:, 1:]
    order = np.argsort(times, kind="stable")
    return Trace(found, in_ns(times[order] - times[order[0]]), lengths[order].astype(np.int64))


def _collect(rows: Iterator[_Row]) -> Units:
    """Return the rows as columns, without a Python object for each number."""
    flat = array("d", itertools.chain.from_iterable(rows))
    return np.frombuffer(flat, dtype=np.float64).reshape(-1, 3)


def _detect_layout(path: Path, lines: Iterator[str]) -> str:
    """Tell the layout by the first line that is not empty."""
    number, first = next(((number, line) for number, line in enumerate(lines, start=1) if line.strip()), (1, ""))
    if first.lstrip().startswith("{"):
        record = _object(_Place(path, number), first)
        return "mooncake" if "hash_ids" in record and all(key in record for key in _MOONCAKE) else "jsonl"
    if set(_BURSTGPT) <= {name.strip() for name in first.split(",")}:
        return "burstgpt"
    hint = f"use one JSON object per line, or CSV with the columns {', '.join(_BURSTGPT)}"
    raise _bad(f"the format of {path} is unknown", hint)


def _jsonl(place: _Place, lines: Iterator[str]) -> Iterator[_Row]:
    for record in _objects(place, lines):
        key = next((key for key in TIME_KEYS if key in record), None)
        if key is None:
            place.wrong("the request has no time", f"it needs one of {', '.join(TIME_KEYS)}")
        yield (
            _instant(place, key, record[key]) * TIME_KEYS[key],
            _first_length(place, record, INPUT_KEYS),
            _first_length(place, record, OUTPUT_KEYS),
        )


def _mooncake(place: _Place, lines: Iterator[str]) -> Iterator[_Row]:
    for record in _objects(place, lines):
        for key in _MOONCAKE:
            if key not in record:
                place.wrong(f"{key} is missing", f"mooncake needs {', '.join(_MOONCAKE)}")
        time, given, asked = (record[key] for key in _MOONCAKE)
        lengths = _length(place, _MOONCAKE[1], given), _length(place, _MOONCAKE[2], asked)
        yield _instant(place, "timestamp", time) * 1e6, *lengths


def _burstgpt(place: _Place, lines: Iterator[str]) -> Iterator[_Row]:
    rows = csv.reader(lines)
    header = [name.strip() for name in next(filter(None, rows), [])]
    missing = [name for name in _BURSTGPT if name not in header]
    place.line = rows.line_num
    if missing:
        place.wrong(f"the column {missing[0]!r} is missing", f"burstgpt needs {', '.join(_BURSTGPT)}")
    at, given, asked = (header.index(name) for name in _BURSTGPT)
    try:
        for row in filter(None, rows):
            place.line = rows.line_num
            if len(row) != len(header):
                place.wrong(f"{len(row)} columns, but the header has {len(header)}")
            yield (
                _instant(place, _BURSTGPT[0], _number(place, _BURSTGPT[0], row[at])) * 1e9,
                _length(place, _BURSTGPT[1], _number(place, _BURSTGPT[1], row[given])),
                _length(place, _BURSTGPT[2], _number(place, _BURSTGPT[2], row[asked])),
            )
    except csv.Error as exc:
        raise _bad(f"{place.path}, line {rows.line_num}: {exc}") from exc


_READERS: dict[str, Callable[[_Place, Iterator[str]], Iterator[_Row]]] = {
    "jsonl": _jsonl,
    "mooncake": _mooncake,
    "burstgpt": _burstgpt,
}


def _objects(place: _Place, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for place.line, line in enumerate(lines, start=1):
        if line.strip():
            yield _object(place, line)


def _object(place: _Place, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as exc:
        raise _bad(f"{place.path}, line {place.line}: not JSON: {exc}") from exc
    if not isinstance(record, dict):
        place.wrong("not a JSON object")
    return record


def _number(place: _Place, key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as exc:
        raise _bad(f"{place.path}, line {place.line}: {key} is not a number: {text!r}") from exc


def _instant(place: _Place, key: str, value: Any) -> float:
    """Return a time that a schedule can have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        place.wrong(f"{key} is not a number: {value!r}")
    if not 0 <= value < _ENDLESS:
        place.wrong(f"{key} is {value}, but a time must be finite and not negative")
    return float(value)


def _first_length(place: _Place, record: dict[str, Any], keys: Sequence[str]) -> int:
    """Return the length under whichever key there is; -1 where there is none."""
    key = next((key for key in keys if record.get(key) is not None), None)
    return -1 if key is None else _length(place, key, record[key])


def _length(place: _Place, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST or value % 1:
        place.wrong(f"{key} is not a number of tokens: {value!r}")
    return int(value)
