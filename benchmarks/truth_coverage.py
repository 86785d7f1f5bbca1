"""How often the intervals that Prony prints hold the truth, on a part of what `benchmarks/coverage.py` draws."""

from __future__ import annotations

from benchmarks.coverage import show_following, show_percentiles
from benchmarks.coverage_runs import NOISES

_GRID = ((72, 5, 0.03), (368, 3, 0.2), (368, 10, 0.03), (1000, 30, 0.2), (3700, 10, 0.2))
_RUNS = (3, 5, 6, 8, 10, 20, 50)


def print_coverage(sets: int, seed: int) -> list[str]:
    """Print what intervals claim and hold; return what misses its claim by more than two points and chance."""
    print("\nintervals: claimed and held")
    short = show_percentiles(sets, seed, is_all=True, noises=NOISES[::2], grid=_GRID)
    short += show_following(2 * sets, seed, _RUNS)
    return [f"{short} intervals hold less than they claim"] if short else []
