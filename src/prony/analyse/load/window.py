"""Split a load's samples into runs and mark the requests inside each measurement window."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from prony.instruments.columns import Requests
from prony.instruments.window import window_of
from prony.model.load import Load
from prony.model.result import Repetition
from prony.ports.driver import Cause

if TYPE_CHECKING:
    import polars as pl

_OTHERS = {"load", "first"}  # phases before any request


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

    has_others = not _OTHERS.isdisjoint(samples["phase"].unique().cast(pl.String))
    taken = samples.filter(~pl.col("phase").cast(pl.String).is_in(_OTHERS)) if has_others else samples
    index = taken["index"].to_numpy()
    if taken["repetition"].n_unique() == 1 and bool(np.all(index[1:] > index[:-1])):
        return [taken]
    return taken.sort("repetition", "index", "begin_ns", "end_ns").partition_by("repetition", maintain_order=True)
