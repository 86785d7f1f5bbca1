"""Read request logs of other programs (JSON lines) and convert them to samples.

Each line has `timestamp_start` and `timestamp_end` (seconds of the epoch, often whole ones), `latency_s` and `success`,
and may have `operation_type` or `operation`, `error`, `http_status`, tokens and bytes. A line that has neither an id
nor an operation is a header.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prony.instruments.requests import CAUSES, Array, request_schema
from prony.ports.driver import Cause

if TYPE_CHECKING:
    import polars as pl

_S = 10**9
_IDS = ("request_id", "operation_type", "operation")
_CAUSES = {"connection_failed": Cause.REFUSED, "curl_failed": Cause.REFUSED, "http_error": Cause.STATUS}
_UNFILLED = "$BENCHMARK_ID"  # a shell's quotes kept what it should have filled in: no request of this test
_COUNTED = ("items", "vectors", "batch_size")


@dataclass(frozen=True)
class RequestLine:
    """One request as it was told; None where nothing was."""

    begin_s: float
    end_s: float
    latency_s: float
    succeeded: bool
    operation: str = "request"
    error: str = ""
    status: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    bytes_in: int | None = None
    items: int = 1
    client: int = 0

    @property
    def cause(self) -> Cause:
        """Why it is no success, as far as the word for it says; a reply that was none is what is left."""
        if self.succeeded:
            return Cause.OK
        if self.error in CAUSES:
            return Cause(CAUSES.index(self.error))
        return _CAUSES.get(self.error, Cause.STATUS)


@dataclass(frozen=True)
class Log:
    """`unread` are lines that are no whole request, `headers` those that tell of the test as a whole."""

    lines: tuple[RequestLine, ...] = ()
    headers: tuple[Mapping[str, Any], ...] = ()
    unread: int = 0
    service_type: str = ""

    @property
    def has_whole_seconds(self) -> bool:
        """Are all stamps whole seconds, so that nobody knows when within one a request came?"""
        return all(line.begin_s == int(line.begin_s) and line.end_s == int(line.end_s) for line in self.lines)

    @property
    def timeless(self) -> int:
        """How many say that they succeeded in no time at all, or in less."""
        return sum(line.succeeded and line.latency_s <= 0 for line in self.lines)

    @property
    def span_s(self) -> tuple[float, float]:
        """From the first stamp to the last, and at least as long as the longest request."""
        begin = min(line.begin_s for line in self.lines)
        longest = max((line.latency_s for line in self.lines if line.succeeded), default=0.0)
        return begin, max(begin + longest, *(line.end_s for line in self.lines))


def read_log(paths: Sequence[Path]) -> Log:
    """Read files as one log; each file is a client of its own unless its lines say who sent them."""
    found = []
    for number, path in enumerate(paths):
        with path.open(encoding="utf-8", errors="replace") as file:
            found.append(_read(file, number))
    return joined_logs(found)


def joined_logs(logs: Sequence[Log]) -> Log:
    """Return several logs as one, in their order."""
    return Log(
        tuple(line for one in logs for line in one.lines),
        tuple(header for one in logs for header in one.headers),
        sum(one.unread for one in logs),
        next((one.service_type for one in logs if one.service_type), ""),
    )


def _read(texts: Iterable[str], client: int) -> Log:
    lines: list[RequestLine] = []
    headers: list[Mapping[str, Any]] = []
    unread, kind = 0, ""
    for text in texts:
        if not text.strip():
            continue
        written = _object(text)
        if written is None:
            unread += 1
        elif not any(name in written for name in _IDS) or written.get("benchmark_id") == _UNFILLED:
            headers.append(written)
        elif (line := _line(written, client)) is None:
            unread += 1
        else:
            lines.append(line)
            kind = kind or str(written.get("service_type") or "")
    return Log(tuple(lines), tuple(headers), unread, kind)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _line(written: Mapping[str, Any], client: int) -> RequestLine | None:
    """Return the request; None where it lacks what every one has."""
    begin = _number(written.get("timestamp_start"))
    end = begin if written.get("timestamp_end") is None else _number(written["timestamp_end"])
    latency = _number(written.get("latency_s", 0))
    success = written.get("success", False)
    if begin is None or end is None or latency is None or not isinstance(success, bool):
        return None
    line = RequestLine(begin, max(begin, end), latency, success, client=_whole(written.get("client")) or client)
    return replace(
        line,
        operation=str(written.get("operation_type") or written.get("operation") or "request"),
        error="" if success else str(written.get("error") or ""),
        status=_whole(written.get("http_status")) or 0,
        input_tokens=_whole(written.get("input_tokens")),
        output_tokens=_whole(written.get("output_tokens")),
        bytes_in=_whole(written.get("bytes")),
        items=next((count for name in _COUNTED if (count := _whole(written.get(name)))), 1),
    )


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and abs(value) < 2**33 else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def place_requests(log: Log, *, offset_ns: int = 0) -> tuple[Array, Array, tuple[int, int]]:
    """Return when each request began and ended, and the window that holds all of them, moved by `offset_ns`.

    A latency is kept to the nanosecond and begins at its first stamp, or as much earlier as it takes to end within the
    window: stamps of whole seconds are the beginnings of the seconds in which something happened.
    """
    first, last = (round(stamp * _S) for stamp in log.span_s)
    begins = np.array([round(line.begin_s * _S) for line in log.lines], dtype=np.int64)
    lasting = [round(line.latency_s * _S) if line.succeeded and line.latency_s > 0 else 0 for line in log.lines]
    durations = np.array(lasting, dtype=np.int64)
    last = max(last, first + 1)
    begins = np.maximum(np.minimum(begins, last - np.maximum(durations, 1)), first)
    return begins + offset_ns, begins + durations + offset_ns, (first + offset_ns, last + offset_ns)


def frame_of(log: Log, begins: Array, ends: Array, repetition: int = 0) -> pl.DataFrame:
    """Return one row a request in the order of their beginnings; what nobody told is null, or 0 as in every load."""
    import polars as pl

    count = len(log.lines)
    zeros = [0] * count
    columns: dict[str, Any] = {
        "repetition": [repetition] * count, "index": zeros, "phase": ["measure"] * count,
        "begin_ns": begins, "end_ns": ends, "due_ns": begins, "sent_ns": begins, "first_ns": zeros,
        "operation": [line.operation for line in log.lines],
        "cause": [CAUSES[line.cause] for line in log.lines],
        "status": [min(line.status, 2**15 - 1) for line in log.lines],
        "bytes_in": [line.bytes_in for line in log.lines], "lag_ns": zeros,
        "client": [min(line.client, 2**15 - 1) for line in log.lines],
        "input_tokens": [line.input_tokens for line in log.lines],
        "output_tokens": [line.output_tokens for line in log.lines],
        "reasoning_tokens": [None] * count, "cached_tokens": [None] * count,
        "content_ns": [None] * count, "token_ns": [None] * count,
        "items": [line.items for line in log.lines], "quality": [None] * count,
    }  # fmt: skip
    frame = pl.DataFrame(columns, schema=request_schema()).sort("begin_ns", maintain_order=True)
    return frame.with_columns(pl.int_range(count, dtype=pl.Int32).alias("index"))
