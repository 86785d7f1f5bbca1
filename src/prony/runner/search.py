"""Choose a search's next load from its probes, each judged on its requests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prony.instruments.columns import Requests
from prony.instruments.window import Window
from prony.instruments.within_limit import counts_within
from prony.load.search import machine, probe_load, slo_as_shares
from prony.model.load import Load
from prony.model.result import Repetition


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
        self._wanted = slo_as_shares(load.slo)

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

        # All requests of a probe count, so that its window matters to none.
        run = Requests.of(pl.read_parquet(requests), repetition.index, Window(0, 0))
        self._search.count(level, counts_within(run, self._wanted))
