"""Every model of the zoo: the same bytes each time, living outputs, and a card that tells the truth."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from zoo_runs import built, graph_and_axes, inputs_for, outputs_of

from lanes import only_slowly
from prony.plugins.models.zoo import ZOO
from prony.runner.checksum import sha256_of
from prony.runner.onnx_file import read_graph, value_bounds


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("zoo")
    yield folder
    shutil.rmtree(folder)  # hundreds of megabytes, which pytest would keep for three more runs


def macs_of_graph(path: Path, axes: Mapping[str, int]) -> int:
    """Count multiply-accumulates node by node, from the shapes that the `onnx` package infers."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")  # shapes are enough, and inference copies all it is given
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = axes[dim.dim_param]
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    values = (*model.graph.value_info, *model.graph.input, *model.graph.output)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values}
    shapes |= {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    # A product of matrices sums over the last axis of its first input, a convolution over all but the first of its
    # weight's.
    terms = {"Conv": lambda node: math.prod(shapes[node.input[1]][1:])}
    terms["MatMul"] = terms["Gemm"] = lambda node: shapes[node.input[0]][-1]
    return sum(
        math.prod(shapes[node.output[0]]) * terms[node.op_type](node)
        for node in model.graph.node
        if node.op_type in terms
    )


def dense_macs(*widths: int) -> int:
    return sum(inside * outside for inside, outside in pairwise(widths))


def yolo_macs() -> int:
    sides = (416, 208, 104, 52, 26, 13, 13, 13)
    channels = (3, 16, 32, 64, 128, 256, 512, 1024, 1024)
    body = sum(
        side**2 * 9 * inside * outside for side, inside, outside in zip(sides, channels, channels[1:], strict=False)
    )
    return body + 13**2 * 1024 * 125


def resnet_macs() -> int:
    total, inside, side = 112**2 * 49 * 3 * 64, 64, 56
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        small = side // stride
        total += side**2 * inside * width + small**2 * (9 * width**2 + 4 * width**2) + small**2 * inside * 4 * width
        total += (blocks - 1) * small**2 * (4 * width * width + 9 * width**2 + 4 * width**2)
        inside, side = 4 * width, small
    return total + 2048 * 1000


def mobilenet_macs() -> int:
    total, inside, side = 112**2 * 27 * 32, 32, 112
    for expansion, outside, blocks, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for step in (stride,) + (1,) * (blocks - 1):
            wide, small = inside * expansion, side // step
            total += (side**2 * inside * wide if expansion > 1 else 0) + small**2 * wide * (9 + outside)
            inside, side = outside, small
    return total + 49 * 320 * 1280 + 1280 * 1000


def bert_macs(layers: int, width: int, sequence: int = 128) -> int:
    return layers * (12 * sequence * width**2 + 2 * sequence**2 * width) + width**2


def gpt_macs(layers: int, width: int, vocabulary: int, past: int = 128) -> int:
    return layers * (12 * width**2 + 2 * (past + 1) * width) + width * vocabulary


BY_HAND: dict[str, Callable[[], int]] = {
    "noop": lambda: 0,
    "tiny": lambda: dense_macs(16, 18, 16),
    "mlp": lambda: dense_macs(784, 512, 512, 10),
    "mobilenet-v2": mobilenet_macs,
    "resnet-50": resnet_macs,
    "tiny-yolov2": yolo_macs,
    "bert-mini": lambda: bert_macs(4, 256),
    "bert-base": lambda: bert_macs(12, 768),
    "gpt-step": lambda: gpt_macs(6, 384, 32000),
}


# Large ones, made of the same parts as mobilenet-v2 and bert-mini.
LARGE = ("bert-base", "resnet-50", "tiny-yolov2", "gpt-step")
EVERY = [*(name for name in ZOO if name not in LARGE), *only_slowly(*LARGE)]


@pytest.mark.parametrize("name", EVERY)
def test_a_card_tells_the_truth(cache: Path, name: str) -> None:
    card, path = ZOO[name], built(name, cache)
    graph, axes = graph_and_axes(path)
    assert graph.parameters == card.parameters
    assert axes == card.axes
    assert path.stat().st_size == pytest.approx(card.size_bytes, rel=0.05, abs=64)
    assert macs_of_graph(path, axes) == card.macs
    assert BY_HAND[name]() == card.macs


@pytest.mark.parametrize("name", EVERY)
def test_outputs_are_finite_and_depend_on_the_input(cache: Path, name: str) -> None:
    path = built(name, cache)
    graph, axes = graph_and_axes(path)
    first, second = (outputs_of(path, inputs_for(graph, axes, seed=seed)) for seed in (1, 2))
    for output in graph.outputs:
        assert np.isfinite(first[output.name]).all()
        assert 0.01 < first[output.name].std() < 100
        assert np.abs(first[output.name] - second[output.name]).mean() > 0.01 * first[output.name].std()


@pytest.mark.parametrize("name", EVERY)
def test_two_builds_give_the_same_bytes(cache: Path, tmp_path: Path, name: str) -> None:
    assert sha256_of(built(name, cache)) == sha256_of(built(name, tmp_path))


@pytest.mark.parametrize("name", [name for name in ZOO if name not in ("bert-base", "resnet-50", "tiny-yolov2")])
def test_dynamic_axes_take_other_sizes(cache: Path, name: str) -> None:
    path = built(name, cache)
    graph, axes = graph_and_axes(path, batch=3)
    axes = {axis: size if axis == "batch" else 7 for axis, size in axes.items()}
    found = outputs_of(path, inputs_for(graph, axes))
    assert {array.shape[0] for array in found.values()} == {3}


@pytest.mark.slow
def test_the_batch_is_dynamic_everywhere(cache: Path) -> None:
    for name in ZOO:
        assert {(value.dims or ("",))[0] for value in read_graph(built(name, cache)).inputs} == {"batch"}


def test_items_of_a_batch_do_not_mix(cache: Path) -> None:
    path = built("bert-mini", cache)
    graph, axes = graph_and_axes(path, batch=2, sequence=16)
    feed = inputs_for(graph, axes)
    together = outputs_of(path, feed)["last_hidden_state"]
    alone = outputs_of(path, {name: array[1:] for name, array in feed.items()})["last_hidden_state"]
    np.testing.assert_allclose(together[1:], alone, atol=1e-4)


def test_masked_tokens_change_nothing(cache: Path) -> None:
    path = built("bert-mini", cache)
    graph, axes = graph_and_axes(path, sequence=16)
    feed = inputs_for(graph, axes)
    feed["attention_mask"] = np.array([[1] * 10 + [0] * 6])
    other = feed | {"input_ids": np.concatenate([feed["input_ids"][:, :10], feed["input_ids"][:, 10:] + 1], axis=1)}
    right, found = (outputs_of(path, item)["last_hidden_state"][:, :10] for item in (feed, other))
    np.testing.assert_allclose(found, right, atol=1e-4)


def test_token_ids_are_bounded_by_the_embeddings(cache: Path) -> None:
    bert, gpt = (value_bounds(read_graph(built(name, cache))) for name in ("bert-mini", "gpt-step"))
    assert {name: below for name, (below, _) in bert.items()} == {"input_ids": 30522, "token_type_ids": 2}
    assert gpt == {"input_ids": (32000, "rows of embedding.word")}


def test_the_decoders_cache_grows_by_the_new_token(cache: Path) -> None:
    path = built("gpt-step", cache)
    graph, axes = graph_and_axes(path, past=5)
    feed = inputs_for(graph, axes)
    found = outputs_of(path, feed)
    assert found["present_key_0"].shape == (1, 6, 6, 64)
    np.testing.assert_array_equal(found["present_key_0"][:, :, :5], feed["past_key_0"])


def test_small_models_are_small(cache: Path) -> None:
    assert built("noop", cache).stat().st_size < 3_000
    assert 2_000 < built("tiny", cache).stat().st_size < 4_000
