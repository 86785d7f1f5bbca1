"""A search's probes in, the load of the next one out: each judged on its requests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import InputError
from prony.load.search import machine, probe_load, wanted
from prony.model.load import Load
from prony.model.result import Repetition

if TYPE_CHECKING:
    import polars as pl

    from prony.load.search import Wanted


@dataclass(frozen=True)
class Probed:
    """One load that is to be held, and its level."""

    load: Load
    level: float


class Searching:
    """One job's search."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._search = machine(load)
        self._wanted = wanted(load.slo)
        unknown = [one.metric for one in self._wanted if one.metric not in ("e2e_ms", "ttft_ms", "tpot_ms")]
        if unknown:
            hint = "e2e_ms, ttft_ms or tpot_ms, with a percentile: ttft_ms.p99"
            raise InputError(f"a search cannot hold {unknown[0]}", hint=hint, code="recipe")

    def next(self) -> Probed | None:
        """Return the next probe, or None where the search is over."""
        level = self._search.next()
        return None if level is None else Probed(probe_load(self._load, level, self._search.attempt), level)

    def tell(self, level: float, requests: Path, repetition: Repetition) -> None:
        """Judge a probe. One that failed as a whole did not hold."""
        if repetition.state != "ok" or not requests.exists():
            self._search.tell(level, held=False)
            return
        import polars as pl

        frame = pl.read_parquet(requests)
        self._search.count(level, [(*_good(frame, one), one.share) for one in self._wanted])


def _good(frame: pl.DataFrame, one: Wanted) -> tuple[int, int]:
    """Return how many requests are within the limit, and how many there are; one that failed is not within it."""
    import polars as pl

    first = pl.coalesce(pl.col("token_ns").list.first(), pl.col("first_ns"))
    whole = pl.col("end_ns") - pl.col("begin_ns")
    taken = {
        "e2e_ms": whole,
        "ttft_ms": first - pl.col("begin_ns"),
        "tpot_ms": (pl.col("end_ns") - first) / (pl.col("output_tokens") - 1),
    }[one.metric]
    known = frame.select(good=(pl.col("cause") == "ok") & (taken / 1e6 <= one.limit))["good"]
    return int(known.fill_null(value=False).sum()), known.len()
