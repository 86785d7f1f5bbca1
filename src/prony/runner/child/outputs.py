"""Save a model's outputs to a file and read them back, for comparison in another process."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from prony.errors import StoreError
from prony.ports.engine import Array

# A model may call its output `file`, or whatever else numpy.savez has for an argument.
_PREFIX = "output:"


def keep(path: str, outputs: Mapping[str, Array]) -> None:
    """Write outputs to an .npz file."""
    named = {f"{_PREFIX}{name}": _plain(array) for name, array in outputs.items()}
    try:
        np.savez(path, **named)  # type: ignore[arg-type]
    except OSError as exc:
        raise StoreError(f"cannot keep the outputs in {path}: {exc}", hint="is the disk full or read-only?") from exc


def read_outputs(path: str) -> dict[str, Array]:
    """Read what `keep` wrote."""
    with np.load(path) as file:
        return {name.removeprefix(_PREFIX): file[name] for name in file}


def _plain(array: Array) -> Array:
    """Return text as numpy's own type: as objects it could only be kept by pickling."""
    return array.astype(np.str_) if array.dtype.kind == "O" else array
