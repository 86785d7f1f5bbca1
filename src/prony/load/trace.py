"""Read a trace file: when each request came and how many tokens it had.

Three layouts. `jsonl`: one object a line, with one of the keys of `TIME_KEYS` and, where they are known, lengths in
tokens under one of `INPUT_KEYS` and `OUTPUT_KEYS`. `mooncake`: the same with `timestamp` in ms and both lengths on
every line; its `hash_ids` are passed over. `burstgpt`: CSV with the columns of that data set, seconds.
"""

from __future__ import annotations

import csv
import itertools
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from prony.errors import InputError, NotFoundError
from prony.load.arrivals import Units, in_ns, refuse_too_many
from prony.ports.driver import Stamps

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


def read(path: Path, *, layout: str = "auto") -> Trace:
    """Read a trace; every mistake in it is told with its file, line and key."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            found = _detect_layout(path, lines) if layout == "auto" else layout
            lines.seek(0)
            rows = _collect(_READERS[found](_Place(path), lines))
    except FileNotFoundError as exc:
        raise NotFoundError(f"no trace at {path}", hint="a path is relative to the recipe's folder") from exc
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
    hint = f"a JSON object a line, or CSV with the columns {', '.join(_BURSTGPT)}"
    raise _bad(f"the first line of {path} is of no trace layout", hint)


def _jsonl(place: _Place, lines: Iterator[str]) -> Iterator[_Row]:
    for record in _objects(place, lines):
        key = next((key for key in TIME_KEYS if key in record), None)
        if key is None:
            place.wrong("no key says when the request came", f"one of {', '.join(TIME_KEYS)}")
        yield (
            _instant(place, key, record[key]) * TIME_KEYS[key],
            _first_length(place, record, INPUT_KEYS),
            _first_length(place, record, OUTPUT_KEYS),
        )


def _mooncake(place: _Place, lines: Iterator[str]) -> Iterator[_Row]:
    for record in _objects(place, lines):
        for key in _MOONCAKE:
            if key not in record:
                place.wrong(f"no {key}", f"mooncake has {', '.join(_MOONCAKE)}")
        time, given, asked = (record[key] for key in _MOONCAKE)
        lengths = _length(place, _MOONCAKE[1], given), _length(place, _MOONCAKE[2], asked)
        yield _instant(place, "timestamp", time) * 1e6, *lengths


def _burstgpt(place: _Place, lines: Iterator[str]) -> Iterator[_Row]:
    rows = csv.reader(lines)
    header = [name.strip() for name in next(filter(None, rows), [])]
    missing = [name for name in _BURSTGPT if name not in header]
    place.line = rows.line_num
    if missing:
        place.wrong(f"no column {missing[0]!r}", f"burstgpt has {', '.join(_BURSTGPT)}")
    at, given, asked = (header.index(name) for name in _BURSTGPT)
    try:
        for row in filter(None, rows):
            place.line = rows.line_num
            if len(row) != len(header):
                place.wrong(f"{len(row)} columns, and the header has {len(header)}")
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
        raise _bad(f"{place.path}, line {place.line}: no JSON: {exc}") from exc
    if not isinstance(record, dict):
        place.wrong("not a JSON object")
    return record


def _number(place: _Place, key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as exc:
        raise _bad(f"{place.path}, line {place.line}: {key} is no number: {text!r}") from exc


def _instant(place: _Place, key: str, value: Any) -> float:
    """Return a time that a schedule can have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        place.wrong(f"{key} is no number: {value!r}")
    if not 0 <= value < _ENDLESS:
        place.wrong(f"{key} is {value}, and a time is neither negative nor endless")
    return float(value)


def _first_length(place: _Place, record: dict[str, Any], keys: Sequence[str]) -> int:
    """Return the length under whichever key there is; -1 where there is none."""
    key = next((key for key in keys if record.get(key) is not None), None)
    return -1 if key is None else _length(place, key, record[key])


def _length(place: _Place, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST or value % 1:
        place.wrong(f"{key} is no number of tokens: {value!r}")
    return int(value)
