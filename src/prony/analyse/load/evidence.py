"""What the verdict on a load is judged on: what every verdict is, and the clients, the windows and the requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prony.analyse.evidence import Evidence
from prony.analyse.load.search_result import SearchResult
from prony.instruments.columns import Requests
from prony.model.clients import ClientSide
from prony.model.estimate import Estimate
from prony.model.load import Load


@dataclass(frozen=True)
class LoadEvidence(Evidence):
    """`used` are the requests of `runs`, in the same order; `all_runs` are those of every run that succeeded, also
    where not one request did. `sides` are by repetition."""

    load: Load = field(default_factory=Load)
    used: tuple[Requests, ...] = ()
    all_runs: tuple[Requests, ...] = ()
    sides: Mapping[int, ClientSide] = field(default_factory=dict)
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    searched: SearchResult | None = None

    @property
    def used_sides(self) -> list[ClientSide]:
        return [self.sides[run.repetition] for run in self.used if run.repetition in self.sides]

    def value(self, key: str) -> float | None:
        found = self.estimates.get(key)
        return None if found is None else found.value
