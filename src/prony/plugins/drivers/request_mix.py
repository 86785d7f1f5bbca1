"""Decide how many different requests a load has, and draw their keys and operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from prony.ports.driver import Wants

Numbers = np.ndarray[Any, np.dtype[np.int64]]
MOST_BYTES = 128 * 1024**2


def how_many(wants: Wants, distinct: int, *, bytes_each: int, least: int = 16) -> int:
    """Return how many to make: what is sent at most, what is asked for, what memory can hold; used again after that."""
    held = max(MOST_BYTES // max(bytes_each, 1), least)
    return max(min(distinct, held, wants.count or distinct), 1)


def pick_numbers(rng: np.random.Generator, among: int, count: int, *, skew: float) -> Numbers:
    """Return `count` numbers below `among`: evenly at skew 0, else the first most often (Zipf with that exponent)."""
    if skew == 0:
        return rng.integers(0, among, size=count)
    weights = np.arange(1, among + 1, dtype=np.float64) ** -skew
    edges = np.cumsum(weights)
    found = np.searchsorted(edges, rng.random(count) * edges[-1], side="right")
    numbers: Numbers = np.minimum(found, among - 1).astype(np.int64)
    return numbers


def shared_out(rng: np.random.Generator, shares: dict[str, float], count: int) -> list[str]:
    """Return `count` names, each as often as its share of the whole says, in a random order."""
    names = [name for name, share in shares.items() if share > 0]
    bounds = np.cumsum([shares[name] for name in names])
    ranks = np.searchsorted(bounds / bounds[-1], (np.arange(count) + 0.5) / count)
    return [names[rank] for rank in rng.permutation(np.minimum(ranks, len(names) - 1))]
