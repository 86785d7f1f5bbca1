"""Compare two sets of outputs and measure how far apart they are. Needs numpy only, to work beside any engine.

Outputs are saved to a file and read back, for comparison in another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prony.errors import StoreError
from prony.ports.engine import Array

Outputs = Mapping[str, Array]


@dataclass
class _Worst:
    """The worst of every figure over all outputs, and what is worth saying of any of them."""

    max_abs_error: float | None = None
    max_error_of_range: float | None = None
    cosine: float | None = None
    notes: list[str] = field(default_factory=list)

    def take(self, absolute: float, of_range: float | None, cosine: float | None) -> None:
        self.max_abs_error = max(absolute, self.max_abs_error or 0.0)
        if of_range is not None:
            self.max_error_of_range = max(of_range, self.max_error_of_range or 0.0)
        if cosine is not None:
            self.cosine = cosine if self.cosine is None else min(cosine, self.cosine)


def compare_outputs(got: Outputs, reference: Outputs) -> dict[str, Any]:
    """Compare outputs with a reference's, by name, or by position where the names differ and the counts agree.

    Returns `finite` (of what was got), `compared`, `max_abs_error`, `max_error_of_range` (by the span of each reference
    output), `cosine` (each the worst over all floating outputs, None where none tells) and `note`.
    """
    worst = _Worst()
    pairs = _pair_outputs(got, reference, worst)
    compared = pairs is not None
    for name, ours, theirs in pairs or ():
        if ours.shape != theirs.shape:
            worst.notes.append(f"{name} has the shape {list(ours.shape)}, but the reference has {list(theirs.shape)}")
            compared = False
        else:
            _one(name, ours, theirs, worst)
    return {
        "finite": _is_finite(got),
        "compared": compared,
        "max_abs_error": worst.max_abs_error if compared else None,
        "max_error_of_range": worst.max_error_of_range if compared else None,
        "cosine": worst.cosine if compared else None,
        "note": "; ".join(worst.notes),
    }


def _is_finite(outputs: Outputs) -> bool:
    """Say whether every floating output is free of NaN and infinity."""
    return all(bool(np.isfinite(array).all()) for array in outputs.values() if array.dtype.kind in "fc")


def _pair_outputs(got: Outputs, reference: Outputs, worst: _Worst) -> list[tuple[str, Array, Array]] | None:
    if set(got) == set(reference):
        return [(name, got[name], reference[name]) for name in got]
    if len(got) != len(reference):
        worst.notes.append(f"{len(got)} outputs, but the reference has {len(reference)}")
        return None
    worst.notes.append("outputs matched by position: their names differ")
    return [(name, array, other) for (name, array), other in zip(got.items(), reference.values(), strict=True)]


def _one(name: str, ours: Array, theirs: Array, worst: _Worst) -> None:
    if not ours.size:
        return
    if ours.dtype.kind in "fc" and theirs.dtype.kind in "fc":
        _floats(name, ours, theirs, worst)
        return
    equal = np.asarray(ours == theirs)
    share = float(equal.mean()) if equal.shape == ours.shape else 0.0
    worst.notes.append(f"{name}: {_percent(share)} of {ours.size} elements equal")


def _percent(share: float) -> str:
    # Never rounded up to all of them.
    return "100%" if share == 1 else f"{min(share, 0.9999):.2%}"


def _floats(name: str, ours: Array, theirs: Array, worst: _Worst) -> None:
    """Compare where both are finite; where they are not, say so, and count a disagreement as infinitely wrong."""
    wide = np.complex128 if "c" in (ours.dtype.kind, theirs.dtype.kind) else np.float64
    a, b = ours.astype(wide).reshape(-1), theirs.astype(wide).reshape(-1)
    usable = np.isfinite(a) & np.isfinite(b)
    if not usable.all():
        _say_unusable(name, a, b, worst)
        if not _same_gaps(a, b):
            worst.take(float("inf"), float("inf"), None)
    if usable.any():
        _figures(a[usable], b[usable], worst)


def _same_gaps(a: Array, b: Array) -> bool:
    """Do both have the same NaN and infinities in the same places?"""
    gaps = ~(np.isfinite(a) & np.isfinite(b))
    return bool(np.array_equal(a[gaps], b[gaps], equal_nan=True))


def _say_unusable(name: str, a: Array, b: Array, worst: _Worst) -> None:
    mine, theirs = (int((~np.isfinite(side)).sum()) for side in (a, b))
    where = "the same" if _same_gaps(a, b) else "not the same"
    worst.notes.append(f"{name}: {mine} of {a.size} not finite, {theirs} in the reference, {where}")


def _figures(a: Array, b: Array, worst: _Worst) -> None:
    error = float(np.abs(a - b).max())
    span = float(np.abs(b).max()) if b.dtype.kind == "c" else float(b.max() - b.min())
    span = span or float(np.abs(b).max())  # one number, or the same everywhere: its magnitude is all there is
    of_range = error / span if span else (0.0 if not error else None)
    worst.take(error, of_range, _cosine(a, b) if error else 1.0)


def _cosine(a: Array, b: Array) -> float | None:
    # Scaled first: squares of very large or very small numbers leave the range of float64.
    largest = float(np.abs(a).max()), float(np.abs(b).max())
    if not all(largest):
        return 1.0 if largest == (0.0, 0.0) else None
    x, y = a / largest[0], b / largest[1]
    product = float(np.vdot(x, y).real / (np.linalg.norm(x) * np.linalg.norm(y)))
    return min(1.0, max(-1.0, product))


# A model may call its output `file`, or whatever else numpy.savez has for an argument.
_PREFIX = "output:"


def save_outputs(path: str, outputs: Mapping[str, Array]) -> None:
    """Write outputs to an .npz file."""
    named = {f"{_PREFIX}{name}": _plain(array) for name, array in outputs.items()}
    try:
        np.savez(path, **named)  # type: ignore[arg-type]
    except OSError as exc:
        raise StoreError(
            f"cannot store the outputs in {path}: {exc}", hint="check whether the disk is full or read-only"
        ) from exc


def read_outputs(path: str) -> dict[str, Array]:
    """Read what `save_outputs` wrote."""
    with np.load(path) as file:
        return {name.removeprefix(_PREFIX): file[name] for name in file}


def _plain(array: Array) -> Array:
    """Return text as numpy's own type: as objects it could only be kept by pickling."""
    return array.astype(np.str_) if array.dtype.kind == "O" else array
