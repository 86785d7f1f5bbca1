"""A load in, HdrHistogram files of its latencies out: percentiles of each run as text, and a log by the second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.errors import NotFoundError
from prony.measure.seconds import NS_PER_S
from prony.measure.window import Window, window_of
from prony.model.dossier import Entry
from prony.report.exported import ExportedLoad
from prony.report.hdr_histogram import Histogram
from prony.report.load_series import requests_of

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array = np.ndarray[Any, np.dtype[Any]]

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
