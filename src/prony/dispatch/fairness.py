"""Lots with waiting jobs in, the order in which to serve them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prony.model.queue import Lot


def order(lots: Iterable[Lot], leased: Mapping[str, int]) -> list[Lot]:
    """Return the higher priority first; of equals the experiment that has the fewest jobs running, then the oldest.

    `leased` counts the jobs that run now, by experiment.
    """
    return sorted(lots, key=lambda lot: (-lot.priority, leased.get(lot.experiment_id, 0), lot.created_at, lot.id))
