"""Choose a size for each dynamic axis of a model's inputs, and record where it came from."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prony.errors import InputError
from prony.ports.engine import UNKNOWN_RANK, TensorSpec, shape_flag

BATCH = "batch"
TOTAL = "total"
PAST = "past"
SEQUENCE = "sequence"
SAMPLES = "samples"
USUAL_SEQUENCE = 128

# What the name of an axis says of its size; the first line that matches decides. None: worked out, not looked up.
AXIS_RULES: tuple[tuple[str, re.Pattern[str], int | None], ...] = (
    (TOTAL, re.compile(r"total|mask"), None),
    (PAST, re.compile(r"past|cache|prev"), 128),
    (BATCH, re.compile(r"batch|^(n|b|bs)$"), None),
    ("height", re.compile(r"height|^(img_|image_|in_|input_)?h$"), 224),
    ("width", re.compile(r"width|^(img_|image_|in_|input_)?w$"), 224),
    ("channels", re.compile(r"channel|^c$"), 3),
    (SAMPLES, re.compile(r"sample|audio|wave"), 16000),
    (SEQUENCE, re.compile(r"seq|token|len|word|char|byte|frame|time|^[lt]$"), USUAL_SEQUENCE),
)
# Names that an exporter made up: they say nothing, so only the place of the axis speaks.
_MADE_UP = re.compile(r"^$|^\?$|^-1$|unk|^s\d+$|dim_?\d+$|^d\d+$|dynamic|^dyn\d*$|^none$")
_CHANNELS = (1, 3, 4)
_EXPRESSION = re.compile(r"\+|\*|//| - ")
# The state of a recurrent network is [layers, batch, features] by everybody's habit.
_STATE = re.compile(r"state|hidden|cell|^[hc](_?[0n\d])?$")


@dataclass(frozen=True)
class AxisSize:
    value: int
    source: str


@dataclass(frozen=True)
class Sizes:
    """Every input's shape; `sequence` and `past` are the lengths that its contents must agree with."""

    shapes: Mapping[str, tuple[int, ...]]
    sources: Mapping[str, str]
    sequence: int | None
    past: int


@dataclass
class _Open:
    """What is being worked out: sizes by axis name, because one name has one size in every input."""

    specs: Sequence[TensorSpec]
    batch_size: int
    axes: Mapping[str, int]
    by_name: dict[str, AxisSize] = field(default_factory=dict)

    def names(self) -> list[str]:
        return list(dict.fromkeys(dim for spec in self.specs for dim in spec.shape if isinstance(dim, str) and dim))


def rule_of_axis(axis: str) -> str | None:
    """Return the word of the rule that an axis name matches."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", axis).lower()
    return next((word for word, pattern, _ in AXIS_RULES if pattern.search(snake)), None)


def axis_word(spec: TensorSpec, position: int) -> str | None:
    """Return what an open axis is, by its name or else by its place; None where it is worked out from others."""
    name = str(spec.shape[position] or "")
    if _EXPRESSION.search(name):
        return None
    word = rule_of_axis(name) if name and not _MADE_UP.search(name.lower()) else None
    if word is None and _is_batch(spec, position, name):
        return BATCH
    return word or _word_by_place(spec, position)


def _word_by_place(spec: TensorSpec, position: int) -> str:
    shape, last = spec.shape, len(spec.shape) - 1
    if last == 3:
        channels = 3 if shape[3] in _CHANNELS and shape[1] not in _CHANNELS else 1
        sides = [at for at in (1, 2, 3) if at != channels]
        return "channels" if position == channels else "height" if position == sides[0] else "width"
    is_wave = "float" in spec.dtype and position == last and (last < 2 or shape[1] == 1)
    return SAMPLES if is_wave else SEQUENCE


def outline_sizes(
    specs: Sequence[TensorSpec], *, batch_size: int, axes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, list[AxisSize | None] | None]:
    """Return the size of each axis as far as it is known, None of one that is not, None of an input of unknown rank."""
    work = _Open(specs, batch_size, axes)
    _check_names(work, shapes)
    return _outline(work, shapes)


def _outline(work: _Open, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, list[AxisSize | None] | None]:
    for spec in work.specs:
        if spec.name in shapes:
            _take_shape(work, spec, shapes[spec.name])
    return {spec.name: _settle_one(work, spec, shapes.get(spec.name)) for spec in work.specs}


def settle(
    specs: Sequence[TensorSpec], *, batch_size: int, axes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> Sizes:
    """Give every axis of every input a size, or say which one the recipe must give."""
    work = _Open(specs, batch_size, axes)
    _check_names(work, shapes)
    found = _outline(work, shapes)
    if (error := _missing(work, found)) is not None:
        raise error
    settled = {name: [size for size in sizes or () if size is not None] for name, sizes in found.items()}
    result = {name: tuple(size.value for size in sizes) for name, sizes in settled.items()}
    _check_batch(work, result)
    sources = {
        name: f"recipe: inputs.shapes.{name}" if name in shapes else _format_sizes(sizes)
        for name, sizes in settled.items()
    }
    return Sizes(result, sources, _sequence(work, result), _past(work))


def _check_names(work: _Open, shapes: Mapping[str, tuple[int, ...]]) -> None:
    refuse_unknown("inputs.axes", work.axes, work.names(), "dynamic axis")
    refuse_unknown("inputs.shapes", shapes, [spec.name for spec in work.specs], "input")
    for axis, size in work.axes.items():
        if rule_of_axis(axis) == BATCH and not _EXPRESSION.search(axis) and size != work.batch_size:
            raise InputError(
                f"inputs.axes.{axis} is {size}, but batch_size is {work.batch_size}",
                hint=f"remove {axis} and set workload.batch_size: {size}",
            )


def refuse_unknown(where: str, given: Iterable[str], known: Sequence[str], what: str) -> None:
    """Raise for the first name that the model does not have, with the nearest one that it has."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"this model has: {', '.join(known) or 'none'}"
            raise InputError(f"{where}.{name}: the model has no {what} of that name", hint=hint)


def _take_shape(work: _Open, spec: TensorSpec, shape: tuple[int, ...]) -> None:
    """Check a whole shape against the declared one, and let it decide the named axes."""
    if any(size < 0 for size in shape):
        raise InputError(
            f"inputs.shapes.{spec.name} has a negative size: {list(shape)}", hint="write sizes of 1 or more"
        )
    if spec.shape == UNKNOWN_RANK:
        return
    fits = len(shape) == len(spec.shape) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(spec.shape, shape, strict=True)
    )
    if not fits:
        raise InputError(
            f"inputs.shapes.{spec.name} is {list(shape)}, but the model declares {_format_shape(spec)}",
            hint="keep the model's fixed sizes, and write one number per axis",
        )
    for dim, size in zip(spec.shape, shape, strict=True):
        if isinstance(dim, str) and dim:
            _agree(work, spec, dim, size)


def _agree(work: _Open, spec: TensorSpec, axis: str, size: int) -> None:
    seen = work.by_name.get(axis)
    given = work.axes.get(axis, seen.value if seen else size)
    if rule_of_axis(axis) == BATCH and not _EXPRESSION.search(axis):
        given = work.batch_size
    if given != size:
        raise InputError(
            f"axis {axis} is {size} in inputs.shapes.{spec.name} and {given} elsewhere in the recipe",
            hint="an axis must have the same size in every input; batch_size sets the batch (prony bench: --batch)",
        )
    work.by_name[axis] = AxisSize(size, f"recipe: inputs.shapes.{spec.name}")


def _format_shape(spec: TensorSpec) -> str:
    """Return a declared shape as a person would write it."""
    return "[" + ", ".join("?" if dim in (None, "") else str(dim) for dim in spec.shape) + "]"


def _settle_one(work: _Open, spec: TensorSpec, shape: tuple[int, ...] | None) -> list[AxisSize | None] | None:
    """Return a size for each axis of an input, None where nothing tells one; None where the rank itself is unknown."""
    if shape is not None:
        return [AxisSize(size, f"recipe: inputs.shapes.{spec.name}") for size in shape]
    if spec.shape == UNKNOWN_RANK:
        return None
    return [_axis(work, spec, position) for position in range(len(spec.shape))]


def _axis(work: _Open, spec: TensorSpec, position: int) -> AxisSize | None:
    dim = spec.shape[position]
    if isinstance(dim, int):
        return AxisSize(dim, "model")
    name = dim or ""
    size = _find_by_name(work, name)
    if size is None and _is_batch(spec, position, name):
        size = AxisSize(work.batch_size, "batch_size")  # before any suggestion: the recipe decides the batch
    if size is None and position in spec.suggested:
        size = AxisSize(*spec.suggested[position])
    if size is None and name:
        size = _by_rule(work, name)
    if size is not None and name:
        work.by_name[name] = size
    return size


def _is_batch(spec: TensorSpec, position: int, name: str) -> bool:
    if name and not _EXPRESSION.search(name) and rule_of_axis(name) == BATCH:
        return True
    # One unnamed axis of floats may as well be a waveform: one sample would be timed as a whole inference.
    roomy = len(spec.shape) > 1 or "float" not in spec.dtype
    is_first = position == 0 and roomy
    is_state = position == 1 and len(spec.shape) == 3 and bool(_STATE.search(spec.name.lower()))
    return (is_first or is_state) and bool(_MADE_UP.search(name.lower()))


def _find_by_name(work: _Open, name: str) -> AxisSize | None:
    if name in work.axes:
        return AxisSize(work.axes[name], f"recipe: inputs.axes.{name}")
    return work.by_name.get(name)


def _by_rule(work: _Open, name: str) -> AxisSize | None:
    if _EXPRESSION.search(name):
        return _compute_axis(work, name)
    word = rule_of_axis(name)
    if word is None:
        return None
    if word == BATCH:
        return AxisSize(work.batch_size, "batch_size")
    if word == TOTAL:
        return _total(work)
    size = next(size for rule, _, size in AXIS_RULES if rule == word)
    return None if size is None else AxisSize(size, f"rule: {name} -> {size}")


def _total(work: _Open) -> AxisSize:
    """Return past + sequence where the model has both, else the length of the sequence."""
    plain = [name for name in work.names() if not _EXPRESSION.search(name)]
    past = next((name for name in plain if rule_of_axis(name) == PAST), None)
    sequence = next((name for name in plain if rule_of_axis(name) == SEQUENCE), None)
    parts = [name for name in (past, sequence) if name is not None]
    values = [size.value for size in (_find_by_name(work, name) or _by_rule(work, name) for name in parts) if size]
    if values:
        return AxisSize(sum(values), f"rule: {' + '.join(parts)}")
    return AxisSize(128, "rule: total -> 128")


def _compute_axis(work: _Open, name: str) -> AxisSize | None:
    """Work out an axis that is a sum or product of others, such as `past_length + 1`."""
    try:
        tree = ast.parse(name.strip(), mode="eval").body
    except SyntaxError:
        return None
    value = _evaluate(work, tree)
    return None if value is None else AxisSize(value, f"rule: {name}")


def _evaluate(work: _Open, node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if isinstance(node, ast.Name):
        size = _find_by_name(work, node.id) or _by_rule(work, node.id)
        return size.value if size else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _evaluate(work, node.left), _evaluate(work, node.right)
    if left is None or right is None:
        return None
    operation = {ast.Add: int.__add__, ast.Sub: int.__sub__, ast.Mult: int.__mul__}.get(type(node.op))
    if operation is None:
        return left // right if isinstance(node.op, ast.FloorDiv) and right else None
    return operation(left, right)


def _missing(work: _Open, found: Mapping[str, list[AxisSize | None] | None]) -> InputError | None:
    """Return the error that names the first axis without a size and shows, for all of them, what to write; None where
    each has one."""
    lacking = [spec for spec in work.specs if (sizes := found[spec.name]) is None or None in sizes]
    if not lacking:
        return None
    first = lacking[0]
    sizes = found[first.name]
    if sizes is None:
        message = f"input {first.name!r}: the model does not record its shape"
    else:
        position = sizes.index(None)
        name = first.shape[position]
        which = f"{name!r}" if name else "which has no name"
        message = f"input {first.name!r} {_format_shape(first)}: unknown size of axis {position}, {which}"
    lines = _recipe_lines(work, lacking, found)
    hint = f"set the size in the recipe, for example:\nworkload:\n  inputs:\n{lines}"
    flags = " ".join(shape_flag(spec.name, _example(work, spec, found)) for spec in lacking)
    return InputError(message, hint=f"{hint}\nor with prony bench: {flags}", code="unknown_size")


def _example(work: _Open, spec: TensorSpec, found: Mapping[str, list[AxisSize | None] | None]) -> list[int]:
    """Return a whole shape for an input, with an example wherever a size is lacking."""
    sizes = found[spec.name]
    if sizes is None:
        return [work.batch_size, 3, 224, 224]
    return [size.value if size else _example_size(spec, position) for position, size in enumerate(sizes)]


def _example_size(spec: TensorSpec, position: int) -> int:
    return 224 if len(spec.shape) == 4 and not _is_named(spec.shape[position]) else 128


def _is_named(axis: int | str | None) -> bool:
    return isinstance(axis, str) and not _MADE_UP.search(axis.lower())


def _recipe_lines(work: _Open, lacking: Sequence[TensorSpec], found: Mapping[str, list[AxisSize | None] | None]) -> str:
    """Return the lines of a recipe: a named axis once for all inputs, and the whole shape of any other input."""
    axes: dict[str, int] = {}
    shapes: dict[str, list[int]] = {}
    for spec in lacking:
        open_axes = [position for position, size in enumerate(found[spec.name] or ()) if size is None]
        if open_axes and all(_is_named(spec.shape[position]) for position in open_axes):
            axes |= {str(spec.shape[position]): _example_size(spec, position) for position in open_axes}
        else:
            shapes[spec.name] = _example(work, spec, found)
    lines = ["    axes:", *(f"      {name}: {size}" for name, size in axes.items())] if axes else []
    lines += ["    shapes:", *(f"      {name}: {shape}" for name, shape in shapes.items())] if shapes else []
    return "\n".join(lines)


def _check_batch(work: _Open, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a batch that no input carries: the numbers would be labelled with a batch that was never run."""
    if work.batch_size == 1 or any(size.source == "batch_size" for size in work.by_name.values()):
        return
    firsts = {name: shape[0] for name, shape in shapes.items() if shape}
    if work.batch_size in firsts.values():
        return
    what = ", ".join(f"{name} has {size}" for name, size in firsts.items()) or "it has no input with an axis"
    raise InputError(
        f"batch_size is {work.batch_size}, but the model has a fixed batch: {what}",
        hint="use batch_size: 1, or export the model with a dynamic first axis",
        code="fixed_batch",
    )


def _format_sizes(sizes: Sequence[AxisSize]) -> str:
    sources = dict.fromkeys(size.source for size in sizes if size.source != "model")
    return "; ".join(sources) or "model"


def _sequence(work: _Open, shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """Return the length that inputs called `length` must tell: a sequence axis, else the second of two or three."""
    for name, size in work.by_name.items():
        if rule_of_axis(name) in (SEQUENCE, "samples") and not _EXPRESSION.search(name):
            return size.value
    return next((shape[1] for shape in shapes.values() if len(shape) in (2, 3)), None)


def _past(work: _Open) -> int:
    past = (
        size.value for name, size in work.by_name.items() if rule_of_axis(name) == PAST and not _EXPRESSION.search(name)
    )
    return next(past, 0)
