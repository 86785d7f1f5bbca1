"""Write HdrHistogram files of a load's latencies: percentiles as text, and a log of intervals."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prony.errors import NotFoundError
from prony.instruments.per_second import NS_PER_S
from prony.instruments.window import Window, window_of
from prony.model.experiment_data import Entry
from prony.ports.exporter import ExportedLoad
from prony.report.plots.load_series import requests_of

if TYPE_CHECKING:
    import polars as pl


Array = np.ndarray[Any, np.dtype[Any]]

DIGITS = 3
_HOUR_NS = 3_600_000_000_000
# With three digits: 2048 places in the first bucket, and 1024 in each further one, which is twice as wide.
_HALF_MAGNITUDE = 10
_PLACES = 2 << _HALF_MAGNITUDE
_TICKS = 5  # of the text: lines for each halving of the distance to 100 %
_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314


class Histogram:
    """Counts of whole numbers (nanoseconds); a value is known to one part in a thousand."""

    def __init__(self, values: Array) -> None:
        indices = places(np.maximum(values.astype(np.int64), 0))
        self.counts = np.bincount(indices) if indices.size else np.zeros(0, dtype=np.int64)
        self.highest_trackable = max(_HOUR_NS, int(values.max(initial=0)))

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def max(self) -> int:
        """The largest value that lies in the same place as the largest that was counted; 0 of none."""
        return int(highest(np.array([self.counts.size - 1]))[0]) if self.counts.size else 0

    @property
    def buckets(self) -> int:
        return max(1, math.ceil(math.log2((self.highest_trackable + 1) / _PLACES)) + 1)

    def moments(self) -> tuple[float, float]:
        """Return mean and standard deviation, each value standing in the middle of its place."""
        used = np.flatnonzero(self.counts)
        if not used.size:
            return 0.0, 0.0
        middles = (lowest(used) + highest(used) + 1) // 2
        mean = float(np.average(middles, weights=self.counts[used]))
        return mean, math.sqrt(float(np.average((middles - mean) ** 2, weights=self.counts[used])))

    def steps(self) -> Iterator[tuple[int, float, int]]:
        """Give (value, percentile, count up to it) at percentiles that come closer the nearer they are to 100."""
        used = np.flatnonzero(self.counts)
        if not used.size:
            return
        reached, values = np.cumsum(self.counts[used]), highest(used)
        shares = 100.0 * reached / reached[-1]
        level = 0.0
        while True:
            place = int(np.searchsorted(shares, level))
            yield int(values[place]), level, int(reached[place])
            if place == used.size - 1:
                break
            level += 100.0 / (_TICKS * 2 ** (math.floor(math.log2(100 / (100 - level))) + 1))
        yield int(values[-1]), 100.0, int(reached[-1])

    def encode(self) -> str:
        """Return the counts as other HdrHistograms read them: version 2, compressed, in base 64."""
        payload = _runs(self.counts)
        header = struct.pack(">iiiiqqd", _COOKIE, len(payload), 0, DIGITS, 1, self.highest_trackable, 1.0)
        packed = zlib.compress(header + payload)
        return base64.b64encode(struct.pack(">ii", _COMPRESSED_COOKIE, len(packed)) + packed).decode()


def places(values: Array) -> Array:
    """Return where each value is counted."""
    # The exponent of a float is the length of the whole number, exactly so below 2**53: a hundred days.
    bits = np.frexp(np.maximum(values, _PLACES - 1).astype(np.float64))[1].astype(np.int64)
    buckets = bits - (_HALF_MAGNITUDE + 1)
    within = values >> buckets
    found: Array = ((buckets + 1) << _HALF_MAGNITUDE) + within - (1 << _HALF_MAGNITUDE)
    return found


def lowest(indices: Array) -> Array:
    """Return the smallest value that is counted at each place."""
    buckets, within = _split(indices)
    found: Array = within << buckets
    return found


def highest(indices: Array) -> Array:
    """Return the largest value that is counted at each place."""
    buckets, within = _split(indices)
    found: Array = ((within + 1) << buckets) - 1
    return found


def _split(indices: Array) -> tuple[Array, Array]:
    buckets = (indices.astype(np.int64) >> _HALF_MAGNITUDE) - 1
    within = (indices & ((1 << _HALF_MAGNITUDE) - 1)) + (1 << _HALF_MAGNITUDE)
    first = buckets < 0
    return np.where(first, 0, buckets), np.where(first, within - (1 << _HALF_MAGNITUDE), within)


def _runs(counts: Array) -> bytes:
    """Return the counts in order, and for a stretch of zeros only how long it is, as a negative number."""
    written = bytearray()
    zeros = 0
    for count in counts.tolist():
        if count == 0:
            zeros += 1
            continue
        if zeros:
            written += _number(-zeros if zeros > 1 else 0)
            zeros = 0
        written += _number(count)
    return bytes(written)


def _number(value: int) -> bytes:
    """Return a whole number in as few bytes as it needs, its sign in the lowest bit (zig-zag, little end first)."""
    left = (value << 1) ^ (value >> 63)
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


_NS_PER_MS = 1e6


def write(load: ExportedLoad, to: Path) -> list[Path]:
    """Write `JOB-runN.hgrm` for each run (the requests that count) and `JOB.hlog` (all successes, by the second)."""
    entry = load.entry
    frame = requests_of(entry)
    if frame is None:
        raise NotFoundError(f"the requests of job {entry.job.id} cannot be read", hint=f"look in {entry.folder}")
    known = {one.index: one for one in entry.result.repetitions}
    written, lines = [], _head(entry)
    origin = int(frame["begin_ns"].to_numpy().min(initial=2**62))
    for part in frame.partition_by("repetition", maintain_order=True):
        repetition = int(part["repetition"][0])
        begins, ends, good = _columns(part)
        window = window_of(begins, ends, good, entry.job.load, known.get(repetition))
        path = to / f"{entry.job.id}-run{repetition}.hgrm"
        path.write_text(percentile_text(Histogram(_select_counted(begins, ends, good, window))), encoding="ascii")
        written.append(path)
        lines += _intervals((ends - begins)[good], ends[good], origin, f"run{repetition}")
    log = to / f"{entry.job.id}.hlog"
    log.write_text("\n".join(lines) + "\n", encoding="ascii")
    return [*written, log]


def percentile_text(histogram: Histogram) -> str:
    """Return the percentiles in milliseconds as HdrHistogram's plotters read them."""
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for value, percentile, count in histogram.steps():
        share = percentile / 100
        tail = f" {1 / (1 - share):14.2f}" if share < 1 else ""
        lines.append(f"{value / _NS_PER_MS:12.3f} {share:2.12f} {count:10d}{tail}")
    mean, deviation = histogram.moments()
    lines.append(f"#[Mean    = {mean / _NS_PER_MS:12.3f}, StdDeviation   = {deviation / _NS_PER_MS:12.3f}]")
    lines.append(f"#[Max     = {histogram.max / _NS_PER_MS:12.3f}, Total count    = {histogram.total:12d}]")
    lines.append(f"#[Buckets = {histogram.buckets:12d}, SubBuckets     = {2048:12d}]")
    return "\n".join(lines) + "\n"


def _columns(part: pl.DataFrame) -> tuple[Array, Array, Array]:
    return part["begin_ns"].to_numpy(), part["end_ns"].to_numpy(), (part["cause"] == "ok").to_numpy()


def _select_counted(begins: Array, ends: Array, good: Array, window: Window) -> Array:
    counts = good & (begins >= window.begin_ns) & (begins < window.end_ns)
    return (ends - begins)[counts]


def _head(entry: Entry) -> list[str]:
    at = entry.result.started_at
    return [
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {at.timestamp():.3f} (seconds since epoch), {at:%a %b %d %H:%M:%S UTC %Y}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]


def _intervals(latencies: Array, ends: Array, origin: int, tag: str) -> list[str]:
    """Return one line for each second in which something ended, tagged by its run; maxima are in milliseconds."""
    import numpy as np

    second = (ends - origin) // NS_PER_S
    lines = []
    for one in np.unique(second):
        histogram = Histogram(latencies[second == one])
        lines.append(f"Tag={tag},{one:.3f},1.000,{histogram.max / _NS_PER_MS:.3f},{histogram.encode()}")
    return lines
