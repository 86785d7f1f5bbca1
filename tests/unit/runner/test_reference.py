"""Which engine is the reference of a model file: the one that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.kinds.model.runner.check_outputs import is_reference, reference_engine, reference_engines
from prony.ports import plugins


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("model.onnx", "onnxruntime"), ("MODEL.ONNX", "onnxruntime"), ("model.tflite", "litert"),
        ("model.pt2", "torch"), ("model.pt", "torch"), ("model.xml", "openvino"),
        ("model.mlpackage", "coreml"), ("model.mlmodel", "coreml"),
        ("model.ort", None), ("model.null", None), ("model", None),
    ],
)  # fmt: skip
def test_a_file_has_the_plainest_reader_of_its_format_as_reference(name: str, engine: str | None) -> None:
    assert reference_engine(Path(name)) == engine


def test_an_engine_is_the_reference_only_of_what_it_loads() -> None:
    for ending, name in reference_engines().items():
        assert ending in plugins.load_plugin(plugins.ENGINES, name).formats


def test_only_the_reference_itself_in_float32_on_the_cpu_is_compared_with_nothing() -> None:
    model = Path("model.onnx")
    assert is_reference("onnxruntime", "cpu", "default", model)
    assert is_reference("onnxruntime", "cpu", "fp32", model)
    assert not is_reference("onnxruntime", "cpu", "fp16", model)
    assert not is_reference("onnxruntime", "cuda", "default", model)
    assert not is_reference("openvino", "cpu", "default", model)
