"""Make the input arrays of a model, and record where shapes and values came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import InputError, NotFoundError
from prony.ports.engine import Array, TensorSpec
from prony.runner.child.bits import CARRIERS, FLOAT8_BITS
from prony.runner.child.contents import Blank, Filled, check_dtype, convert_type, fill, generator
from prony.runner.child.sizes import refuse_unknown, settle


@dataclass(frozen=True)
class MadeInput:
    """One input as it is fed. A type that numpy lacks is fed as the bits of it; text is an array of objects."""

    name: str
    array: Array
    shape_source: str
    values_source: str
    sha256: str


def make_inputs(
    specs: Sequence[TensorSpec],
    *,
    batch_size: int,
    axes: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, Mapping[str, Any]],
    seed: int,
) -> list[MadeInput]:
    """Make every input of any model.

    `axes`, `shapes` and `values` are the recipe's, by the name of an axis or an input; `values` holds for an input one
    of `constant`, `low` with `high` (left out itself), or `file`. The same arguments give the same bytes.
    """
    refuse_unknown("inputs.values", values, [spec.name for spec in specs], "input")
    for spec in specs:
        check_dtype(spec)
    wanted = {name: {key: value for key, value in given.items() if value is not None} for name, given in values.items()}
    files = {name: _read(name, given["file"]) for name, given in wanted.items() if "file" in given}
    sized = settle(
        specs,
        batch_size=batch_size,
        axes=axes,
        shapes={name: array.shape for name, array in files.items()} | dict(shapes),
    )
    made = []
    for spec in specs:
        blank = Blank(spec, sized.shapes[spec.name], sized.sequence, sized.past, generator(seed, spec.name))
        array, values_source = _contents(blank, wanted.get(spec.name, {}), files.get(spec.name))
        shape_source = sized.sources[spec.name]
        if spec.name in files and spec.name not in shapes:
            shape_source = f"recipe: inputs.values.{spec.name}.file"
        made.append(MadeInput(spec.name, array, shape_source, values_source, digest(array)))
    return made


def digest(array: Array) -> str:
    """Return the SHA-256 of an array: type, shape and contents."""
    total = hashlib.sha256(f"{'str' if array.dtype.kind == 'O' else array.dtype.str}{array.shape}".encode())
    if array.dtype.kind == "O":
        for text in array.reshape(-1):
            total.update(f"{len(text)}:{text}".encode())
    else:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _contents(blank: Blank, given: Mapping[str, Any], file: Array | None) -> Filled:
    name = blank.spec.name
    kinds = [kind for kind in ("constant", "file", "low", "high") if kind in given]
    if not kinds:
        return fill(blank)
    if kinds not in (["constant"], ["file"], ["low", "high"]):
        raise InputError(
            f"inputs.values.{name} has {', '.join(kinds)}", hint="give constant, or file, or low and high together"
        )
    if blank.spec.dtype in FLOAT8_BITS and file is None:
        raise InputError(f"inputs.values.{name}: {blank.spec.dtype} cannot be made from a number", hint="use a file")
    if file is not None:
        return _from_file(blank, file, str(given["file"]))
    if "constant" in given:
        return _constant(blank, given["constant"]), f"recipe: constant {given['constant']}"
    return _between(blank, given["low"], given["high"]), f"recipe: seeded {given['low']}..{given['high']}"


def _constant(blank: Blank, value: Any) -> Array:
    name, dtype = blank.spec.name, blank.spec.dtype
    if isinstance(value, str) != (blank.kind == "U"):
        raise InputError(f"inputs.values.{name}.constant is {value!r}, but the input is of type {dtype}")
    if blank.kind == "U":
        return np.full(blank.shape, value, dtype=object)
    _check_range(blank, value, value)
    return np.asarray(convert_type(np.full(blank.shape, value), dtype))


def _between(blank: Blank, low: float, high: float) -> Array:
    name, dtype = blank.spec.name, blank.spec.dtype
    if blank.kind in "Ub" or high <= low:
        raise InputError(f"inputs.values.{name}: low {low} and high {high} make no range for the type {dtype}")
    if blank.kind in "iu":
        _check_range(blank, low, high - 1)
        return convert_type(blank.random.integers(int(low), int(high), blank.shape), dtype)
    return convert_type(blank.random.uniform(low, high, blank.shape), dtype)


def _check_range(blank: Blank, low: float, high: float) -> None:
    if blank.kind not in "iu":
        return
    info = np.iinfo(blank.spec.dtype)
    if int(low) != low or low < info.min or high > info.max:
        raise InputError(
            f"inputs.values.{blank.spec.name}: {low} does not fit {blank.spec.dtype}",
            hint=f"use whole numbers from {info.min} to {info.max}",
        )


def _read(name: str, file: str) -> Array:
    path = Path(file)
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except FileNotFoundError as exc:
        raise NotFoundError(f"inputs.values.{name}.file: no file at {path}") from exc
    except (ValueError, OSError, EOFError) as exc:
        raise InputError(
            f"inputs.values.{name}.file: {path} cannot be read as .npy: {exc}", hint="write it with numpy.save"
        ) from exc


def _from_file(blank: Blank, array: Array, file: str) -> Filled:
    expected = CARRIERS.get(blank.spec.dtype, blank.spec.dtype)
    found = "str" if array.dtype.kind == "U" else array.dtype.name
    if found != expected or array.shape != blank.shape:
        raise InputError(
            f"inputs.values.{blank.spec.name}.file holds {found} {list(array.shape)}, "
            f"but {expected} {list(blank.shape)} is needed",
            hint="write the array with the model's own type and shape",
        )
    source = f"recipe: file {Path(file).name}"
    return (
        (array.astype(object), source) if found == "str" else (np.ascontiguousarray(array).reshape(array.shape), source)
    )
