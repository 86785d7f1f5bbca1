"""Prepare the runs of a load for plots: per-second series and ordered latencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prony.errors import NotFoundError, StoreError
from prony.instruments.per_second import Seconds, seconds
from prony.instruments.requests import OK, is_requests, read_requests
from prony.instruments.window import window_of
from prony.model.experiment_data import Entry

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class LoadRun:
    """One run: `window_s` is where the part that counts begins and ends, in seconds from the first request on;
    `ordered_ms` are the latencies that count, ascending; `causes` how many requests ended how."""

    repetition: int
    seconds: Seconds
    window_s: tuple[float, float]
    ordered_ms: Numbers
    causes: dict[str, int]


def requests_of(entry: Entry) -> pl.DataFrame | None:
    """Return every request of a job; None where the file is gone or damaged, or holds no requests."""
    try:
        frame = read_requests(entry.folder)
    except (NotFoundError, StoreError):
        return None
    return frame if is_requests(frame) else None


def load_runs(entry: Entry) -> list[LoadRun]:
    """Return the runs that have requests, in order."""
    frame = requests_of(entry)
    if frame is None or not frame.height:
        return []
    known = {one.index: one for one in entry.result.repetitions}
    found = []
    for part in frame.partition_by("repetition", maintain_order=True):
        repetition = int(part["repetition"][0])
        begins, ends = part["begin_ns"].to_numpy(), part["end_ns"].to_numpy()
        succeeded = (part["cause"] == OK).to_numpy()
        window = window_of(begins, ends, succeeded, entry.job.load, known.get(repetition))
        cut = seconds(begins, ends, succeeded)
        counts = succeeded & (begins >= window.begin_ns) & (begins < window.end_ns)
        edges = ((window.begin_ns - cut.origin_ns) / 1e9, (window.end_ns - cut.origin_ns) / 1e9)
        found.append(LoadRun(repetition, cut, edges, _ordered_ms(begins, ends, counts), _causes(part)))
    return sorted(found, key=lambda run: run.repetition)


def _ordered_ms(begins: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    import numpy as np

    ordered: Numbers = np.sort((ends - begins)[counts]) / 1e6
    return ordered


def _causes(part: pl.DataFrame) -> dict[str, int]:
    counted = part["cause"].value_counts().sort("cause")
    return {str(name): int(count) for name, count in counted.iter_rows()}
