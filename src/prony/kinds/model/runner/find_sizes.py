"""Find input sizes at which a model runs, where those that were guessed do not work or none is known."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from prony.ports.engine import UNKNOWN_RANK, TensorSpec
from prony.runner.child.sizes import SAMPLES, SEQUENCE, AxisSize, axis_word, outline_sizes
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.graph_sizes import SuggestedSizes, suggest_sizes
from prony.runner.host import EngineHost, Watch
from prony.runner.onnx_file import read_graph

# A size that is far too large can take longer than all others together, as 16000 steps of a recurrent network do.
_SEARCH_S, _TRY_S = 60.0, 15.0
_SIDES = ("height", "width")
# What is tried where nothing else is known of an axis.
_USUAL = {"height": 224, "width": 224, "channels": 3, SAMPLES: 16000, SEQUENCE: 128, "total": 128, "past": 0}
# What models are usually made for, the most common first.
_PICTURES = (320, 640, 256, 416, 512, 384, 299, 448, 336, 160, 128, 112, 96, 64, 48, 32, 28)
# Heights of lines of text, and a width for them.
_LINES, _LINE_WIDTH = (48, 32, 64), 320
_LENGTHS = {
    SEQUENCE: (77, 64, 512, 256, 32, 16, 384, 1, 80, 1500, 3000),
    SAMPLES: (512, 480000, 8000, 32000, 48000, 1024, 400),
    "past": (0, 1, 16),
}
# Shapes behind the batch of inputs whose number of axes the file does not tell: audio, pictures, features; tokens.
_FLOATS = ((16000,), (3, 224, 224), (1, 16000), (512,), (128,), (80, 128), (128, 80), (1, 28, 28), (10,), (1,))
_WHOLE = ((128,), (16,), (), (1,))
_MOST_TRIES, _MOST_PRODUCTS = 200, 10_000


@dataclass(frozen=True)
class OpenInputs:
    """The inputs of a model, and which of their axes have no size that somebody gave."""

    specs: Sequence[TensorSpec]
    sizes: Mapping[str, list[AxisSize | None] | None]
    batch_size: int

    def open_axes(self, spec: TensorSpec) -> dict[int, str]:
        """Return the axes of an input that may have another size, each with what it is."""
        sizes = self.sizes[spec.name] or []
        return {
            position: word
            for position, size in enumerate(sizes)
            if size is None or (size.source.startswith("rule: ") and " -> " in size.source)
            if (word := axis_word(spec, position)) is not None
        }

    @property
    def words(self) -> set[str]:
        return {word for spec in self.specs for word in self.open_axes(spec).values()}

    @property
    def names(self) -> list[str]:
        """The inputs that have such an axis, or whose number of axes is not known."""
        return [spec.name for spec in self.specs if self.sizes[spec.name] is None or self.open_axes(spec)]

    def arrange(self, chosen: Mapping[str, int]) -> tuple[dict[str, int], dict[str, list[int]]]:
        """Return these sizes by axis where it has a name, and else as the whole shapes of inputs."""
        axes: dict[str, int] = {}
        shapes: dict[str, list[int]] = {}
        for spec in self.specs:
            found = {at: chosen.get(word, _USUAL.get(word, 1)) for at, word in self.open_axes(spec).items()}
            if all(spec.shape[at] for at in found):
                axes |= {str(spec.shape[at]): size for at, size in found.items()}
            else:
                known = [size.value if size else 1 for size in self.sizes[spec.name] or ()]
                shapes[spec.name] = [found.get(at, size) for at, size in enumerate(known)]
        return axes, shapes


@dataclass(frozen=True)
class SizeSearch:
    """The shapes at which a model ran first, of the inputs that have an open axis; `is_cut_off`: not all were tried."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    is_cut_off: bool = False


def find_working_shapes(host: EngineHost, order: ChildOrder, watch: Watch) -> SizeSearch:
    """Run a model at sizes that its graph suggests and at common ones, for a minute at most."""
    deadline_s = time.monotonic() + _SEARCH_S
    told = host.perform(replace(order, op="signature"), watch).done
    if told is None:
        return SizeSearch()
    inputs = _outline([_spec(one) for one in told["specs"]], order)
    was_slow = False
    for axes, shapes in islice(_list_choices(inputs, order.model), _MOST_TRIES):
        left_ns = int(min(_TRY_S, deadline_s - time.monotonic()) * 1e9)
        if not host.is_alive or left_ns <= 0:
            return SizeSearch(is_cut_off=True)
        tried = replace(order, axes=order.axes | axes, shapes=order.shapes | shapes)
        answer = host.perform(tried, replace(watch, timeout_ns=min(watch.timeout_ns, left_ns)))
        if answer.done is not None:
            return SizeSearch(
                {one["name"]: one["shape"] for one in answer.done["inputs"] if one["name"] in inputs.names}
            )
        was_slow = was_slow or (answer.failure is not None and answer.failure.code == "timeout")
    return SizeSearch(is_cut_off=was_slow)


def _spec(told: Message) -> TensorSpec:
    fields: dict[str, Any] = dict(told) | {"shape": tuple(told["shape"])}
    fields["suggested"] = {int(at): (size, source) for at, (size, source) in told["suggested"].items()}
    return TensorSpec(**fields)


def _outline(specs: Sequence[TensorSpec], order: ChildOrder) -> OpenInputs:
    shapes = {name: tuple(shape) for name, shape in order.shapes.items()}
    sizes = outline_sizes(specs, batch_size=order.batch_size, axes=order.axes, shapes=shapes)
    return OpenInputs(specs, sizes, order.batch_size)


def _list_choices(inputs: OpenInputs, model: str) -> Iterator[tuple[dict[str, int], dict[str, list[int]]]]:
    unknown = [spec for spec in inputs.specs if spec.shape == UNKNOWN_RANK and inputs.sizes[spec.name] is None]
    ranks = [[[inputs.batch_size, *rest] for rest in _likely_shapes(spec)] for spec in unknown]
    # The first shapes of all of them together come first.
    ordered = islice(product(*(enumerate(rank) for rank in ranks)), _MOST_PRODUCTS)
    whole = sorted(ordered, key=lambda one: sum(place for place, _ in one))
    suggested = suggest_sizes(read_graph(model)) if model.endswith(".onnx") else SuggestedSizes()
    for chosen in _list_sizes(inputs.words, suggested):
        axes, shapes = inputs.arrange(chosen)
        for several in whole:
            named = {spec.name: shape for spec, (_, shape) in zip(unknown, several, strict=True)}
            yield axes, shapes | named


def _likely_shapes(spec: TensorSpec) -> Sequence[tuple[int, ...]]:
    return _FLOATS if "float" in spec.dtype else _WHOLE


def _list_sizes(words: Collection[str], suggested: SuggestedSizes) -> Iterator[dict[str, int]]:
    """Yield sizes to try by what an axis is: the usual, then those of the graph, then common ones. Pictures are square
    or lines of text, all else varies alone."""
    yield {}
    places = [word for word in _SIDES if word in words]
    varying = [word for word in (SAMPLES, SEQUENCE) if word in words]
    squares = [dict.fromkeys(places, size) for size in (*suggested.sides, *_PICTURES) if places]
    lines = [{"height": height, "width": _LINE_WIDTH} for height in (*suggested.heights, *_LINES) if len(places) == 2]
    known, common = len(suggested.sides) if places else 0, len(suggested.heights) if lines else 0
    yield from (*squares[:known], *lines[:common])
    yield from ({word: size} for word in varying for size in suggested.lengths)
    yield from (*squares[known : known + 5], *lines[common:], *squares[known + 5 :])
    if "channels" in words:
        sides = (224, *suggested.sides, *_PICTURES[:3], 28)
        yield from ({"channels": 1} | dict.fromkeys(places, size) for size in sides)
    yield from ({word: size} for word, lengths in _LENGTHS.items() if word in words for size in lengths)
