"""Evidence for the verdict on a load: its clients, windows and requests, and what a search for the highest load found.

A search finds, among its probes, the highest load that held the SLO.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prony.analyse.estimates import EstimateSet
from prony.analyse.verdict import Evidence
from prony.instruments.columns import Requests
from prony.instruments.within_limit import counts_within
from prony.load.search import Found, plan_search, slo_as_shares
from prony.model.clients import ClientSide
from prony.model.estimate import Estimate
from prony.model.load import Load
from prony.model.result import Repetition


@dataclass(frozen=True)
class SearchResult:
    """What was found; the numbers of the job are those of the highest load that held."""

    found: Found
    noun: str

    def counts(self, repetition: Repetition) -> bool:
        """Is it a run of that load? Where none held, the lowest that did not is shown, so that one sees why."""
        shown = self.found.highest_held if self.found.highest_held is not None else self.found.lowest_not_held
        return repetition.level == shown

    def reasons_excluded(self, repetitions: Iterable[Repetition]) -> dict[int, str]:
        others = [one for one in repetitions if not self.counts(one)]
        return {one.index: f"a probe at {_level(one)} {self.noun}" for one in others}

    @property
    def figures(self) -> EstimateSet:
        """The load between its two limits; they are what was shown and no interval of confidence."""
        held, not_held = self.found.highest_held, self.found.lowest_not_held
        if held is None:
            return EstimateSet()
        probes = len(self.found.probes)
        how = f"highest load that held of {probes} probes; up to the lowest that did not"
        estimate = Estimate(
            value=held,
            unit="1",
            low=held if not_held is not None else None,
            high=not_held,
            count=probes,
            method=how,
        )
        return EstimateSet.one("highest_load.p50", estimate, [held])


def search_of(load: Load, repetitions: Iterable[Repetition], runs: Mapping[int, Requests]) -> SearchResult | None:
    """Go through the probes again in their order; None where the load is no search."""
    if load.search is None:
        return None
    search = plan_search(load)
    for repetition in sorted(repetitions, key=lambda one: one.index):
        if repetition.level is not None:
            run = runs.get(repetition.index)
            if run is None:
                search.tell(repetition.level, held=False)
            else:
                search.count(repetition.level, counts_within(run, slo_as_shares(load.slo)))
    return SearchResult(search.current_result(), "users" if load.search.over == "concurrency" else "requests a second")


def _level(repetition: Repetition) -> str:
    return "an unknown number of" if repetition.level is None else f"{repetition.level:g}"


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
