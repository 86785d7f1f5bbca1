"""Order lots with waiting jobs by priority and fair share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prony.model.queue import Lot


def order(lots: Iterable[Lot], leased: Mapping[str, int], served: Mapping[str, int]) -> list[Lot]:
    """Return the higher priority first; of equals the experiment that has the fewest jobs running, then the one whose
    last turn is longest ago, so that on a single device too nobody waits for the whole of another; then the oldest.

    `leased` counts the jobs that run now, `served` tells the last turn as a number that grows, both by experiment.
    """

    def rank(lot: Lot) -> tuple[object, ...]:
        experiment = lot.experiment_id
        return (-lot.priority, leased.get(experiment, 0), served.get(experiment, 0), lot.created_at, lot.id)

    return sorted(lots, key=rank)
