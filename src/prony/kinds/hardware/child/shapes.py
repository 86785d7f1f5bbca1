"""Matrix products to try: a few squares, a search over shapes, or those of a model's layers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

Shape = tuple[int, int, int]  # m, n, k: (m x k) times (k x n)

# The first of a GPU is the one that warms it up: large enough for its full power.
_SQUARES = {"cpu": (512, 1024, 2048), "gpu": (8192, 4096, 2048, 1024, 16384)}
# Step and largest size of a search; it ends when so many shapes in a row were no better than the best.
_SEARCH = {"cpu": (256, 3072), "gpu": (1024, 20480)}
_SEARCHED = {"cpu": 40, "gpu": 200}
PATIENCE = 60


def shapes_of(options: Mapping[str, Any], place: str) -> list[Shape]:
    """Return the shapes to try on the CPU or on a GPU, as the options ask."""
    if options.get("layers"):
        return [read_shape(text) for text in options["layers"]]
    if options.get("shapes") == "search":
        step, most = _SEARCH[place]
        sizes = range(step, most + 1, step)
        chosen = random.Random(int(options.get("seed", 0)))
        return [(chosen.choice(sizes), chosen.choice(sizes), chosen.choice(sizes)) for _ in range(_SEARCHED[place])]
    return [(size, size, size) for size in _SQUARES[place]]


def read_shape(text: str) -> Shape:
    """Return the sizes of `MxNxK`."""
    m, n, k = (int(word) for word in text.split("x"))
    return m, n, k


def shape_text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def count_operations(shape: Shape) -> float:
    """Return the multiplications and additions of a product."""
    m, n, k = shape
    return 2.0 * m * n * k


def fits_in(shape: Shape, item: int, most: float) -> bool:
    """Say whether both factors and the product of 4-byte sums at most have room."""
    m, n, k = shape
    return item * (m * k + k * n) + max(4, item) * m * n <= most
