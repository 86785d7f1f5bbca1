"""Make the input arrays of a model, and record where their shapes and values came from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator  # now: numpy would import it at its first use, in every child

from prony.errors import InputError, NotFoundError
from prony.ports.engine import Array, TensorSpec
from prony.runner.child.bits import CARRIERS, FLOAT8_BITS, to_bfloat16
from prony.runner.child.sizes import refuse_unknown, settle

ASSUMED_BELOW = 100
_WORDS = ("amber", "brook", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll", "lagoon")


@dataclass(frozen=True)
class Blank:
    """An input that is still empty, and the lengths of the model that its contents must agree with."""

    spec: TensorSpec
    shape: tuple[int, ...]
    sequence: int | None
    past: int
    random: Generator

    @property
    def kind(self) -> str:
        """What numpy calls the kind of its type: b, i, u, f, c; or U for text."""
        if self.spec.dtype == "str":
            return "U"
        if self.spec.dtype in CARRIERS:
            return "f"
        return np.dtype(self.spec.dtype).kind


Filled = tuple[Array, str]


def generator(seed: int, name: str) -> Generator:
    """Return a generator that depends on the seed and the input's name only, never on the other inputs."""
    digest = hashlib.sha256(name.encode()).digest()
    return Generator(PCG64([seed, int.from_bytes(digest[:8], "little")]))


def _check_dtype(spec: TensorSpec) -> None:
    """Refuse a type that has no representation here."""
    if spec.dtype == "str" or spec.dtype in CARRIERS:
        return
    try:
        supported = np.dtype(spec.dtype).kind in "biufc"
    except TypeError:
        supported = False
    if not supported:
        raise InputError(
            f"input {spec.name!r} has the type {spec.dtype}, which numpy does not support",
            hint="export the model with an input type of one byte or more",
            code="unsupported_type",
        )


def _convert_type(values: Array, dtype: str) -> Array:
    """Return values in the type that is fed; bits where numpy lacks the type."""
    if dtype == "bfloat16":
        return to_bfloat16(values)
    return np.array(values, dtype=dtype, order="C")


def fill(blank: Blank) -> Filled:
    """Return contents that fit what the input is, by its name, its type and its shape."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", blank.spec.name).lower()
    if blank.spec.dtype in FLOAT8_BITS:
        return _float8(blank), "seeded, magnitude from 0.25 to 2"
    if blank.kind in "biuf":
        for pattern, make in NAME_RULES:
            filled = make(blank) if pattern.search(name) else None
            if filled is not None:
                return _convert_type(np.broadcast_to(filled[0], blank.shape), blank.spec.dtype), filled[1]
    values, source = _BY_KIND[blank.kind](blank)
    return (values if blank.kind == "U" else _convert_type(values, blank.spec.dtype)), source


def _fill_constant(value: float, reason: str) -> Callable[[Blank], Filled | None]:
    return lambda _: (np.asarray(value), reason)


def _positions(blank: Blank) -> Filled | None:
    if not blank.shape or blank.kind not in "iu":
        return None
    first, count = blank.past, blank.shape[-1]
    bound = blank.spec.below
    if bound is not None and first + count > bound:
        return np.arange(first, first + count) % bound, f"positions {first}..{first + count - 1}, modulo {bound}"
    return np.arange(first, first + count), f"positions {first}..{first + count - 1}"


def _length(blank: Blank) -> Filled | None:
    if blank.sequence is None or blank.kind not in "iu" or len(blank.shape) > 1:
        return None
    return np.asarray(blank.sequence), f"the real length, {blank.sequence}"


def _voice_scales(blank: Blank) -> Filled | None:
    if blank.kind != "f" or blank.shape != (3,):
        return None
    return np.asarray([0.667, 1.0, 0.8]), "noise, length and width of a voice: 0.667, 1, 0.8"


def _timestep(blank: Blank) -> Filled | None:
    return (np.asarray(500), "a diffusion step, 500") if len(blank.shape) < 2 else None


# What the name of an input says of its contents; the first rule that matches and applies decides.
NAME_RULES: tuple[tuple[re.Pattern[str], Callable[[Blank], Filled | None]], ...] = (
    (re.compile(r"mask"), _fill_constant(1, "a mask of ones")),
    (re.compile(r"use_cache"), _fill_constant(1, "true, because a past is fed")),
    (re.compile(r"token_type|segment"), _fill_constant(0, "one segment, zeros")),
    (re.compile(r"pos(ition)?_?ids?$|^positions?$"), _positions),
    (re.compile(r"(^|_)(len|lens|length|lengths)(_|$)"), _length),
    (re.compile(r"^sr$|sampl(e|ing)_?rate"), _fill_constant(16000, "a sampling rate, 16000")),
    (re.compile(r"^(sid|speaker(_id)?)$"), _fill_constant(0, "the first speaker, 0")),
    (re.compile(r"^scales$"), _voice_scales),
    (re.compile(r"^time_?steps?$"), _timestep),
    (re.compile(r"^(speed|temperature)$"), _fill_constant(1, "neutral, 1")),
)


def _looks_like_image(spec: TensorSpec, shape: tuple[int, ...]) -> bool:
    """Say whether an input is a picture: four axes with channels second or last."""
    if len(shape) != 4:
        return False
    return (
        bool(re.search(r"image|pixel|img|photo", spec.name.lower())) or shape[1] in (1, 3, 4) or shape[3] in (1, 3, 4)
    )


def _float(blank: Blank) -> Filled:
    wide = np.float64 if blank.spec.dtype == "float64" else np.float32
    if _looks_like_image(blank.spec, blank.shape):
        return np.asarray(blank.random.random(blank.shape, dtype=wide)), "seeded uniform 0..1, an image"
    return np.asarray(blank.random.standard_normal(blank.shape, dtype=wide)), "seeded standard normal"


def _complex(blank: Blank) -> Filled:
    parts = blank.random.standard_normal((2, *blank.shape))
    return np.asarray(parts[0] + 1j * parts[1]), "seeded standard normal, real and imaginary part"


def _integer(blank: Blank) -> Filled:
    info = np.iinfo(blank.spec.dtype)
    if blank.spec.below is not None:
        below = min(blank.spec.below, int(info.max) + 1)
        return blank.random.integers(0, below, blank.shape), f"seeded 0..{below - 1}, {blank.spec.below_source}"
    if info.bits == 8 and _looks_like_image(blank.spec, blank.shape):
        low, high = int(info.min), int(info.max)
        return blank.random.integers(low, high, blank.shape, endpoint=True), f"seeded {low}..{high}, an image"
    return blank.random.integers(0, ASSUMED_BELOW, blank.shape), f"seeded, assumed below {ASSUMED_BELOW}"


def _boolean(blank: Blank) -> Filled:
    return blank.random.integers(0, 2, blank.shape).astype(bool), "seeded true and false"


def _text(blank: Blank) -> Filled:
    words = np.asarray(_WORDS, dtype=object)
    return np.asarray(words[blank.random.integers(0, len(words), blank.shape)], dtype=object), "seeded short words"


def _float8(blank: Blank) -> Array:
    low, high = FLOAT8_BITS[blank.spec.dtype]
    sign = blank.random.integers(0, 2, blank.shape) << 7
    return np.asarray(blank.random.integers(low, high, blank.shape) | sign).astype(np.uint8)


_BY_KIND: dict[str, Callable[[Blank], Filled]] = {
    "f": _float,
    "c": _complex,
    "i": _integer,
    "u": _integer,
    "b": _boolean,
    "U": _text,
}


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
        _check_dtype(spec)
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
        made.append(MadeInput(spec.name, array, shape_source, values_source, digest_inputs(array)))
    return made


def digest_inputs(array: Array) -> str:
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
        raise InputError(f"inputs.values.{name} has {', '.join(kinds)}", hint="use constant, or file, or low and high")
    if blank.spec.dtype in FLOAT8_BITS and file is None:
        raise InputError(
            f"inputs.values.{name}: {blank.spec.dtype} cannot be filled with a number", hint="use file: NAME.npy"
        )
    if file is not None:
        return _from_file(blank, file, str(given["file"]))
    if "constant" in given:
        return _constant(blank, given["constant"]), f"recipe: constant {given['constant']}"
    return _between(blank, given["low"], given["high"]), f"recipe: seeded {given['low']}..{given['high']}"


def _constant(blank: Blank, value: Any) -> Array:
    name, dtype = blank.spec.name, blank.spec.dtype
    if isinstance(value, str) != (blank.kind == "U"):
        raise InputError(
            f"inputs.values.{name}.constant is {value!r}, but the input is of type {dtype}",
            hint="give a value of that type",
        )
    if blank.kind == "U":
        return np.full(blank.shape, value, dtype=object)
    _check_range(blank, value, value)
    return np.asarray(_convert_type(np.full(blank.shape, value), dtype))


def _between(blank: Blank, low: float, high: float) -> Array:
    name, dtype = blank.spec.name, blank.spec.dtype
    if blank.kind in "Ub" or high <= low:
        raise InputError(
            f"inputs.values.{name}: low {low} and high {high} are not a range of the type {dtype}",
            hint="it needs an input of numbers, and low less than high",
        )
    if blank.kind in "iu":
        _check_range(blank, low, high - 1)
        return _convert_type(blank.random.integers(int(low), int(high), blank.shape), dtype)
    return _convert_type(blank.random.uniform(low, high, blank.shape), dtype)


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
        raise NotFoundError(
            f"inputs.values.{name}.file: file not found: {path}", hint="correct the path, or create the file"
        ) from exc
    except (ValueError, OSError, EOFError) as exc:
        raise InputError(
            f"inputs.values.{name}.file: {path} cannot be read as .npy: {exc}", hint="write it with numpy.save"
        ) from exc


def _from_file(blank: Blank, array: Array, file: str) -> Filled:
    expected = CARRIERS.get(blank.spec.dtype, blank.spec.dtype)
    found = "str" if array.dtype.kind == "U" else array.dtype.name
    if found != expected or array.shape != blank.shape:
        raise InputError(
            f"inputs.values.{blank.spec.name}.file has {found} {list(array.shape)}, "
            f"but {expected} {list(blank.shape)} is needed",
            hint="save the array with the type and shape of the model's input",
        )
    source = f"recipe: file {Path(file).name}"
    return (
        (array.astype(object), source) if found == "str" else (np.ascontiguousarray(array).reshape(array.shape), source)
    )
