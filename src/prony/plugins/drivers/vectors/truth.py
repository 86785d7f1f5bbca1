"""Generate vectors and queries from a seed, with the exact nearest neighbours.

Vectors are made in blocks, each from the seed and its number alone, so that a million of them never lie in memory
together. Their numbers have five digits after the point: what is written as JSON is what the answers are computed from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Metric = Literal["l2", "cosine", "dot"]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]

BLOCK = 4096
_AT_ONCE = 1000
_STORED, _ASKED, _ADDED, _CENTRES = range(4)
_SPREAD = 0.35  # of vectors about their centre, whose own is 1


@dataclass(frozen=True)
class Vectors:
    """`clusters` centres have vectors about them, as embeddings do; none: every vector is on its own."""

    seed: int
    dim: int
    clusters: int

    def stored_block(self, count: int, number: int) -> Floats:
        """Return the block of that number, of a collection of `count`."""
        size = min(BLOCK, count - number * BLOCK)
        return self._drawn(BLOCK, _STORED, number)[:size]

    def query_vectors(self, count: int) -> Floats:
        """Return questions: vectors like those stored, and none of them."""
        return self._drawn(count, _ASKED, 0)

    def insert_batch(self, count: int, number: int) -> Floats:
        """Return the vectors of one batch that is inserted during the load."""
        return self._drawn(count, _ADDED, number)

    def _drawn(self, count: int, kind: int, number: int) -> Floats:
        rng = np.random.default_rng([self.seed, kind, number])
        own = rng.standard_normal((count, self.dim))
        if not self.clusters:
            return own.round(5)
        centres = np.random.default_rng([self.seed, _CENTRES]).standard_normal((self.clusters, self.dim))
        return (centres[rng.integers(0, self.clusters, size=count)] + _SPREAD * own).round(5)


def exact_answers(vectors: Vectors, questions: Floats, *, count: int, top_k: int, metric: Metric) -> Numbers:
    """Return for each question the numbers of its nearest vectors, nearest first, found by looking at every one."""
    parts = [questions[at : at + _AT_ONCE] for at in range(0, len(questions), _AT_ONCE)]
    found = [_nearest(vectors, part, count, top_k, metric) for part in parts]
    return np.concatenate(found) if found else np.zeros((0, top_k), dtype=np.int64)


def _nearest(vectors: Vectors, questions: Floats, count: int, top_k: int, metric: Metric) -> Numbers:
    best = np.zeros((len(questions), 0))
    found: Numbers = np.zeros((len(questions), 0), dtype=np.int64)
    for number in range(-(-count // BLOCK)):
        block = vectors.stored_block(count, number)
        numbers = np.broadcast_to(np.arange(len(block)) + number * BLOCK, (len(questions), len(block)))
        best = np.concatenate([best, nearness(questions, block, metric)], axis=1)
        found = np.concatenate([found, numbers], axis=1)
        if best.shape[1] > top_k:
            kept = np.argpartition(-best, top_k - 1, axis=1)[:, :top_k]
            best, found = np.take_along_axis(best, kept, axis=1), np.take_along_axis(found, kept, axis=1)
    return np.take_along_axis(found, np.argsort(-best, axis=1, kind="stable"), axis=1)


def nearness(questions: Floats, vectors: Floats, metric: Metric) -> Floats:
    """Return how near each vector is to each question: more is nearer, in no unit that means more than that."""
    products: Floats = questions @ vectors.T
    if metric == "dot":
        return products
    squares = (vectors**2).sum(axis=1)
    near: Floats = products / np.sqrt(squares) if metric == "cosine" else 2 * products - squares
    return near
