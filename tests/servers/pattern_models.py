"""Small models that leave their sizes open the way well-known ones do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Inputs = Mapping[str, tuple[int, Sequence[int | str | None] | None]]


def save_model(
    path: Path,
    inputs: Inputs,
    nodes: Sequence[Any],
    constants: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write a model whose output is `y`; weights are seeded."""
    given = [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()]
    made = [helper.make_tensor_value_info("y", FLOAT, None)]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", given, made, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata or {}))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def weights(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32) / 10


def conv(name: str, given: str, made: str, *, stride: int = 1) -> Any:
    return helper.make_node("Conv", [given, name], [made], kernel_shape=[3, 3], strides=[stride] * 2, pads=[1] * 4)


def save_voice_detector(path: Path) -> Path:
    """Takes 512 samples at 16 kHz or 256 at 8 kHz, a state [2, batch, 128] and the rate as a whole number."""
    branches = []
    for samples in (512, 256):
        name = f"w{samples}"
        shape = helper.make_node(
            "Constant", [], [f"to{samples}"], value=helper.make_tensor("", INT64, [2], [-1, samples])
        )
        reshape = helper.make_node("Reshape", ["input", f"to{samples}"], [f"flat{samples}"])
        mean = helper.make_node("ReduceMean", [f"flat{samples}"], [name], axes=[1], keepdims=1)
        out = helper.make_tensor_value_info(name, FLOAT, None)
        branches.append(helper.make_graph([shape, reshape, mean], name, [], [out]))
    nodes = [
        helper.make_node("Equal", ["sr", "rate"], ["is16"]),
        helper.make_node("If", ["is16"], ["level"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("ReduceMean", ["state"], ["now"], axes=[0, 2], keepdims=0),
        helper.make_node("Reshape", ["now", "column"], ["column_now"]),
        helper.make_node("Concat", ["level", "column_now"], ["y"], axis=1),
    ]  # fmt: skip
    inputs = {"input": (FLOAT, (None, None)), "state": (FLOAT, (2, None, 128)), "sr": (INT64, ())}
    return save_model(path, inputs, nodes, {"rate": np.int64(16000), "column": np.array([-1, 1])})


def save_text_detector(path: Path) -> Path:
    """Takes pictures whose sides divide by four, and says nothing of them."""
    nodes = [
        conv("w1", "x", "half", stride=2),
        conv("w2", "half", "quarter", stride=2),
        helper.make_node("ConvTranspose", ["quarter", "w3"], ["up"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Add", ["half", "up"], ["y"]),
    ]
    held = {"w1": weights(4, 3, 3, 3), "w2": weights(4, 4, 3, 3), "w3": weights(4, 4, 2, 2)}
    axes = ("DynamicDimension.0", 3, "DynamicDimension.1", "DynamicDimension.2")
    return save_model(path, {"x": (FLOAT, axes)}, nodes, held)


def save_text_recogniser(path: Path) -> Path:
    """Takes lines of text of any width, which must be 48 pixels high; a question mark stands for the height."""
    nodes = [
        conv("w1", "x", "half", stride=2),
        helper.make_node("AveragePool", ["half"], ["thin"], kernel_shape=[24, 2], strides=[24, 2]),
        helper.make_node("Squeeze", ["thin", "second"], ["line"]),
        helper.make_node("Transpose", ["line"], ["steps"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["steps", "w2"], ["y"]),
    ]
    axes = ("DynamicDimension.0", 3, "?", "DynamicDimension.1")
    held = {"w1": weights(4, 3, 3, 3), "w2": weights(4, 20), "second": np.array([2])}
    return save_model(path, {"x": (FLOAT, axes)}, nodes, held)


def save_voice(path: Path) -> Path:
    """Takes phonemes, how many there are, and three scales; the length must be the true one."""
    nodes = [
        helper.make_node("Gather", ["table", "input"], ["embedded"]),
        helper.make_node("ReduceMax", ["input_lengths"], ["longest"], keepdims=0),
        helper.make_node("Range", ["zero", "longest", "one"], ["steps"]),
        helper.make_node("Cast", ["steps"], ["places"], to=FLOAT),
        helper.make_node("Reshape", ["places", "column"], ["rows"]),
        helper.make_node("Add", ["embedded", "rows"], ["placed"]),
        helper.make_node("ReduceMean", ["placed"], ["levels"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["levels", "mix"], ["three"]),
        helper.make_node("Mul", ["three", "scales"], ["y"]),
    ]
    inputs = {
        "input": (INT64, ("batch_size", "phonemes")),
        "input_lengths": (INT64, ("batch_size",)),
        "scales": (FLOAT, (3,)),
    }
    held = {
        "table": weights(60, 8),
        "zero": np.int64(0),
        "one": np.int64(1),
        "column": np.array([-1, 1]),
        "mix": weights(8, 3),
    }
    return save_model(path, inputs, nodes, held)


def save_digits(path: Path) -> Path:
    """Takes grey pictures of 28 x 28: two layers without padding, then one that is fully connected."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], kernel_shape=[5, 5]),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["b", "w2"], ["c"], kernel_shape=[5, 5]),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("Gemm", ["e", "w3"], ["y"], transB=1),
    ]
    held = {"w1": weights(6, 1, 5, 5), "w2": weights(16, 6, 5, 5), "w3": weights(10, 256)}
    return save_model(path, {"x": (FLOAT, ("batch", 1, "height", "width"))}, nodes, held)


def save_patches(path: Path, side: int) -> Path:
    """Takes square pictures in patches of 16, each with a learned place, and one token before them."""
    count = (side // 16) ** 2
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], kernel_shape=[16, 16], strides=[16, 16]),
        helper.make_node("Reshape", ["a", "to"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 1]),
        helper.make_node("Concat", ["token", "c"], ["d"], axis=1),
        helper.make_node("Add", ["d", "places"], ["y"]),
    ]
    held = {
        "w1": weights(8, 3, 16, 16),
        "to": np.array([1, 8, -1]),
        "token": weights(1, 1, 8),
        "places": weights(1, count + 1, 8),
    }
    return save_model(path, {"x": (FLOAT, (1, 3, "height", "width"))}, nodes, held)


def save_detector(path: Path, side: int) -> Path:
    """Takes square pictures, and has a fixed anchor for each place at the strides 8, 16 and 32."""
    nodes, flat, before = [], [], "x"
    for layer, stride in enumerate((8, 2, 2)):
        nodes.append(helper.make_node(
            "MaxPool", [before], [f"p{layer}"], kernel_shape=[stride] * 2, strides=[stride] * 2
        ))  # fmt: skip
        nodes.append(helper.make_node("Reshape", [f"p{layer}", "to"], [f"f{layer}"]))
        flat.append(f"f{layer}")
        before = f"p{layer}"
    nodes += [helper.make_node("Concat", flat, ["all"], axis=2), helper.make_node("Add", ["all", "anchors"], ["y"])]
    count = sum((side // stride) ** 2 for stride in (8, 16, 32))
    held = {"to": np.array([1, 3, -1]), "anchors": weights(1, 1, count)}
    return save_model(path, {"x": (FLOAT, (1, 3, "height", "width"))}, nodes, held)


def save_waveform(path: Path) -> Path:
    """Takes [batch, samples] and does not even tell that there are two axes."""
    nodes = [
        helper.make_node("Unsqueeze", ["waveform", "second"], ["wave"]),
        helper.make_node("Conv", ["wave", "w"], ["y"], kernel_shape=[400], strides=[160]),
    ]
    return save_model(path, {"waveform": (FLOAT, None)}, nodes, {"second": np.array([1]), "w": weights(4, 1, 400)})


def save_detection(path: Path, side: tuple[int, int]) -> Path:
    """Takes pictures of any size, and tells the one that it was made for as a well-known exporter does."""
    nodes = [helper.make_node("Relu", ["images"], ["y"])]
    inputs: Inputs = {"images": (FLOAT, ("batch", 3, "height", "width"))}
    return save_model(path, inputs, nodes, {}, {"imgsz": str(list(side)), "stride": "32"})
