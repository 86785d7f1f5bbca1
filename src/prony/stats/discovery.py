"""Adjust the probabilities of many tests for the false discovery rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def adjust_probabilities(probabilities: Sequence[float]) -> list[float]:
    """Return, for each, the share of false discoveries if it and all smaller ones were called discoveries.

    By Benjamini and Hochberg. Six lines and not scipy.stats, whose import costs more than a whole comparison.
    """
    if not probabilities:
        return []
    order = np.argsort(probabilities, kind="stable")[::-1]
    count = len(probabilities)
    scaled = np.asarray(probabilities, dtype=np.float64)[order] * count / np.arange(count, 0, -1)
    found = np.empty(count)
    found[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return [float(one) for one in found]
