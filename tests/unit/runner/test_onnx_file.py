"""ONNX declarations agree with the `onnx` package; damaged files are refused."""

from __future__ import annotations

import contextlib
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from lanes import count_examples
from prony.errors import InputError, NotFoundError
from prony.runner.onnx_file import DTYPES, OnnxGraph, is_inside, read_graph, read_tensors, value_bounds

REAL_FILES = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx")) + sorted(
    (Path(onnxruntime.__file__).parent / "datasets").glob("*.onnx")
)


def float_value(name: str, shape: list[Any] | None = None, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def saved(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: list[Any]) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def embedding_model(path: Path) -> Path:
    """Ids reach one table through Unsqueeze, Squeeze and Cast, and a quantised one through DequantizeLinear."""
    weights = [
        numpy_helper.from_array(np.zeros((100, 4), np.float32), "words"),
        numpy_helper.from_array(np.zeros((90, 4), np.int8), "packed"),
        numpy_helper.from_array(np.float32(0.1), "scale"),
        numpy_helper.from_array(np.zeros((4, 7), np.float32), "turned"),
        numpy_helper.from_array(np.array([1], np.int64), "axes"),
    ]
    nodes = [
        helper.make_node("Cast", ["ids"], ["cast"], to=TensorProto.INT32),
        helper.make_node("Unsqueeze", ["cast", "axes"], ["wide"]),
        helper.make_node("Squeeze", ["wide", "axes"], ["narrow"]),
        helper.make_node("Gather", ["words", "narrow"], ["a"]),
        helper.make_node("DequantizeLinear", ["packed", "scale"], ["unpacked"]),
        helper.make_node("Gather", ["unpacked", "ids"], ["b"], axis=0),
        helper.make_node("Gather", ["turned", "columns"], ["c"], axis=1),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    ids, columns = (float_value(name, ["batch"], TensorProto.INT64) for name in ("ids", "columns"))
    return saved(path, nodes, [ids, columns], [float_value("y", ["batch", 4])], weights)


@pytest.mark.parametrize("path", REAL_FILES, ids=lambda path: path.stem)
def test_agrees_with_the_onnx_package_on_real_files(path: Path) -> None:
    ours, theirs = read_graph(path), onnx.load(path)
    filled = {tensor.name for tensor in theirs.graph.initializer}
    assert ours.ir_version == theirs.ir_version
    assert [value.name for value in ours.inputs] == [
        value.name for value in theirs.graph.input if value.name not in filled
    ]
    assert [value.name for value in ours.outputs] == [value.name for value in theirs.graph.output]
    assert [(node.op_type, node.inputs, node.outputs) for node in ours.nodes] == [
        (node.op_type, tuple(node.input), tuple(node.output)) for node in theirs.graph.node
    ]
    assert [tensor.dims for tensor in ours.initializers if tensor.name in filled] == [
        tuple(tensor.dims) for tensor in theirs.graph.initializer
    ]
    assert ours.parameters >= sum(math.prod(tensor.dims) for tensor in theirs.graph.initializer)


def test_names_every_element_type_of_onnx() -> None:
    for name, number in TensorProto.DataType.items():
        plain = {"FLOAT": "float32", "DOUBLE": "float64", "STRING": "str"}
        assert DTYPES[number].replace("_", "") == plain.get(name, name.lower())


def test_reads_types_shapes_and_attributes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("LeakyRelu", ["x"], ["z"], alpha=0.25),
        helper.make_node("Transpose", ["z"], ["y"], perm=[1, 0, 2]),
    ]
    inputs = [float_value("x", ["batch", None, 3], TensorProto.FLOAT16), float_value("s", [], TensorProto.STRING)]
    graph = read_graph(saved(tmp_path / "m.onnx", nodes, inputs, [float_value("y")], []))
    assert [(value.dtype, value.dims) for value in graph.inputs] == [("float16", ("batch", None, 3)), ("str", ())]
    assert graph.outputs[0].dims is None
    assert graph.nodes[0].attributes == {"alpha": 0.25}
    assert graph.nodes[1].attributes == {"perm": (1, 0, 2)}
    assert graph.opset == 17


def test_counts_parameters_and_bytes_by_type(tmp_path: Path) -> None:
    graph = read_graph(embedding_model(tmp_path / "m.onnx"))
    assert graph.parameters == 400 + 360 + 1 + 28 + 1
    assert graph.weight_types == {"float32": 429, "int8": 360, "int64": 1}
    assert {tensor.name: tensor.byte_size for tensor in graph.initializers}["packed"] == 360


def test_four_bit_weights_take_half_a_byte(tmp_path: Path) -> None:
    tensor = helper.make_tensor("w", TensorProto.INT4, [3], b"\x21\x03", raw=True)
    graph = read_graph(saved(tmp_path / "m.onnx", [], [], [], [tensor]))
    assert (graph.initializers[0].dtype, graph.initializers[0].byte_size) == ("int4", 2)


def test_bounds_token_ids_by_the_smallest_table_they_pick_from(tmp_path: Path) -> None:
    assert value_bounds(read_graph(embedding_model(tmp_path / "m.onnx"))) == {"ids": (90, "rows of packed")}


def test_counts_weights_in_constant_nodes_and_nested_graphs(tmp_path: Path) -> None:
    inner = helper.make_graph(
        [helper.make_node("Identity", ["inner"], ["o"])], "then", [], [float_value("o", [2, 3])],
        [numpy_helper.from_array(np.zeros((2, 3), np.float32), "inner")],
    )  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.zeros((5, 5), np.float32), "k")),
        helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    path = saved(tmp_path / "m.onnx", nodes, [float_value("c", [], TensorProto.BOOL)], [float_value("y")], [])
    assert read_graph(path).parameters == 25 + 2 * 6


def test_lists_external_files_once_and_in_order(tmp_path: Path) -> None:
    assert external(tmp_path, "w.bin", "w.bin", "more/v.bin").external_files == ("w.bin", "more/v.bin")


def external(folder: Path, *locations: str) -> OnnxGraph:
    tensors = []
    for index, location in enumerate(locations):
        tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[2])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        tensors.append(tensor)
    return read_graph(saved(folder / "m.onnx", [], [], [], tensors))


@pytest.mark.parametrize("location", ["/etc/passwd", "../w.bin", "a/../../w", "C:\\w.bin", "..\\w", "\\\\host\\w", ""])
def test_refuses_external_data_outside_the_models_folder(tmp_path: Path, location: str) -> None:
    with pytest.raises(InputError, match="outside its own folder") as caught:
        external(tmp_path, location)
    assert caught.value.hint
    assert not is_inside(location)


def test_reads_the_weights_it_is_asked_for(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = saved(tmp_path / "m.onnx", [], [], [], [numpy_helper.from_array(values, "w")])
    np.testing.assert_array_equal(read_tensors(path, read_graph(path).initializers)["w"], values)


def test_refuses_to_read_weights_that_are_not_raw(tmp_path: Path) -> None:
    typed = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    path = saved(tmp_path / "m.onnx", [], [], [], [typed])
    with pytest.raises(InputError, match="float32 weights of w"):
        read_tensors(path, read_graph(path).initializers)


def test_a_file_of_gigabytes_is_not_read_into_memory(tmp_path: Path) -> None:
    path = sparse_model(tmp_path / "big.onnx", elements=2**30)
    tracemalloc.start()
    try:
        assert read_graph(path).parameters == 2**30
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def sparse_model(path: Path, *, elements: int) -> Path:
    """Write a model whose one weight is a hole in the file."""

    def prefixed(number: int, length: int) -> bytes:
        return bytes([number << 3 | 2]) + varint(length)

    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[elements]).SerializeToString()
    raw = prefixed(9, 4 * elements)
    in_tensor = len(tensor) + len(raw) + 4 * elements
    in_graph = len(prefixed(5, in_tensor)) + in_tensor
    with path.open("wb") as stream:
        stream.write(prefixed(7, in_graph) + prefixed(5, in_tensor) + tensor + raw)
        stream.truncate(stream.tell() + 4 * elements)
    return path


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


@pytest.mark.parametrize(
    "content",
    [b"", b"<!DOCTYPE html><html></html>", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", b"\x00" * 9],
    ids=["empty", "web page", "LFS pointer", "zeros"],
)
def test_what_is_no_model_is_refused_with_a_hint(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_graph(path)
    assert caught.value.code == "damaged_model"
    assert caught.value.hint


def test_a_missing_file_and_a_folder_are_the_callers_mistakes(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_graph(tmp_path / "none.onnx")
    with pytest.raises(InputError):
        read_graph(tmp_path)


def test_graphs_nested_without_end_are_refused(tmp_path: Path) -> None:
    message = b""
    for _ in range(2000):
        for number in (6, 5, 1):  # the graph of an attribute of a node
            message = bytes([number << 3 | 2]) + varint(len(message)) + message
    path = tmp_path / "m.onnx"
    path.write_bytes(bytes([7 << 3 | 2]) + varint(len(message)) + message)
    with pytest.raises(InputError, match="nested too deeply"):
        read_graph(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return embedding_model(tmp_path_factory.mktemp("onnx") / "whole.onnx").read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("onnx") / "damaged.onnx"


def survives(path: Path, content: bytes) -> None:
    """Damage may go unseen, or be refused; any other exception fails the test."""
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        value_bounds(read_graph(path))


@settings(max_examples=count_examples(300), deadline=None, derandomize=True)
@given(data=st.data())
def test_garbled_bytes_give_an_input_error_at_worst(whole: bytes, scratch: Path, data: st.DataObject) -> None:
    content = bytearray(whole)
    spots = st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), min_size=1, max_size=8)
    for position, byte in data.draw(spots):
        content[position] = byte
    survives(scratch, bytes(content))


@settings(max_examples=count_examples(100), deadline=None, derandomize=True)
@given(data=st.data())
def test_truncated_bytes_give_an_input_error_at_worst(whole: bytes, scratch: Path, data: st.DataObject) -> None:
    survives(scratch, whole[: data.draw(st.integers(0, len(whole) - 1))])


@settings(max_examples=count_examples(200), deadline=None, derandomize=True)
@given(content=st.binary(max_size=200))
def test_random_bytes_give_an_input_error_at_worst(scratch: Path, content: bytes) -> None:
    survives(scratch, content)
