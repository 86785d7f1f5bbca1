"""The zoo model source: built once, kept whole, the same numbers in every format."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zoo_runs import built, graph_and_axes, inputs_for, outputs_of, relative_error

from lanes import only_slowly
from prony.errors import CapacityError, InputError, NotFoundError, StoreError
from prony.plugins.models.lock import made_once
from prony.plugins.models.zoo import ZOO, ZooSource
from prony.ports.engine import Array
from prony.ports.models import FetchOptions
from prony.runner.checksum import checksum
from servers.forked import process_context

LARGE = ("resnet-50", "tiny-yolov2")
TFLITE = [card.name for card in ZOO.values() if ".tflite" in card.formats]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("zoo")
    yield folder
    shutil.rmtree(folder)  # hundreds of megabytes, which pytest would keep for three more runs


def test_listing_the_zoo_imports_neither_onnx_nor_numpy() -> None:
    program = "import sys, prony.plugins.models.zoo; print([n for n in ('onnx', 'numpy', 'httpx') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("name", "nearest"), [("resnet50", "resnet-50"), ("llm1b", "llm-1b")])
def test_an_unknown_name_comes_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(NotFoundError, match=f"unknown zoo model '{name}'") as caught:
        built(name, Path("/nowhere"))
    assert caught.value.hint == f"did you mean zoo:{nearest}?"


def test_a_model_is_built_once(tmp_path: Path) -> None:
    path = built("mlp", tmp_path)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert built("mlp", tmp_path) == path
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert path == tmp_path / "zoo" / "mlp-1.onnx"


def test_a_file_that_was_cut_short_is_built_again(tmp_path: Path) -> None:
    path = built("tiny", tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert built("tiny", tmp_path).read_bytes() == whole


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    options = FetchOptions(cache=tmp_path, formats=(".onnx",))
    found = ZooSource().fetch("zoo:tiny", options, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (found.path.stat().st_size,) * 2


def test_a_checksum_is_checked(tmp_path: Path) -> None:
    right = checksum((built("tiny", tmp_path),))
    options = FetchOptions(cache=tmp_path, formats=(".onnx",), checksum=right)
    assert ZooSource().fetch("zoo:tiny", options, lambda *_: None).files
    with pytest.raises(InputError) as caught:
        ZooSource().fetch("zoo:mlp", options, lambda *_: None)
    assert caught.value.code == "checksum_mismatch"


def test_without_the_onnx_package_the_command_that_adds_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(CapacityError) as caught:
        built("tiny", tmp_path)
    assert caught.value.hint == 'pip install "prony[onnx]"'


def test_a_cache_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "zoo").write_text("a file where a folder belongs")
    with pytest.raises(StoreError) as caught:
        built("tiny", tmp_path)
    assert caught.value.hint


def _make_with_log(path: Path, log: Path) -> None:
    def write(part: Path) -> None:
        with log.open("a") as stream:
            stream.write("made\n")
        part.write_bytes(b"model")

    made_once(path, write)


def test_processes_that_want_the_same_file_make_it_once(tmp_path: Path) -> None:
    context = process_context()
    arguments = (tmp_path / "zoo" / "m.onnx", tmp_path / "log")
    children = [context.Process(target=_make_with_log, args=arguments) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(180)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "made\n"


def test_a_failure_to_make_leaves_no_file(tmp_path: Path) -> None:
    def write(part: Path) -> None:
        part.write_bytes(b"half")
        raise CapacityError("stopped")

    with pytest.raises(CapacityError):
        made_once(tmp_path / "m.onnx", write)
    assert not list(tmp_path.glob("*.onnx")) + list(tmp_path.glob(".*.onnx"))


def test_onnx_is_taken_wherever_the_engine_loads_it(cache: Path) -> None:
    assert built("tiny", cache, formats=(".xml", ".tflite", ".onnx")).suffix == ".onnx"


def test_a_model_that_lacks_a_format_names_those_that_have_it(cache: Path) -> None:
    with pytest.raises(CapacityError, match=r"zoo:bert-mini cannot be built as \.tflite") as caught:
        built("bert-mini", cache, formats=(".tflite",))
    assert all(name in caught.value.hint for name in TFLITE)
    with pytest.raises(CapacityError) as caught:
        built("tiny", cache, formats=(".mlpackage", ".mlmodel"))
    assert caught.value.hint == "choose an engine that loads .onnx files"


def litert_outputs(path: Path, value: Array) -> Array:
    from ai_edge_litert.interpreter import Interpreter

    interpreter: Any = Interpreter(str(path), num_threads=2)
    (given,), (answer,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.resize_tensor_input(given["index"], value.shape, strict=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], value)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(answer["index"]))


def moved(value: Array, *order: int) -> Array:
    return np.ascontiguousarray(value.transpose(order)) if value.ndim == 4 else value


@pytest.mark.parametrize("name", [*(name for name in TFLITE if name not in LARGE), *only_slowly(*LARGE)])
def test_a_tflite_file_gives_the_same_numbers(cache: Path, name: str) -> None:
    path = built(name, cache)
    graph, axes = graph_and_axes(path, batch=1 if name in ("resnet-50", "tiny-yolov2") else 2)
    feed = inputs_for(graph, axes)
    (value,), (right,) = feed.values(), outputs_of(path, feed).values()
    found = litert_outputs(built(name, cache, formats=(".tflite",)), moved(value, 0, 2, 3, 1))
    assert relative_error(moved(found, 0, 3, 1, 2), right) < 1e-3


def test_two_conversions_to_tflite_give_the_same_bytes(cache: Path, tmp_path: Path) -> None:
    first, second = (built("mobilenet-v2", folder, formats=(".tflite",)) for folder in (cache, tmp_path))
    assert first.read_bytes() == second.read_bytes()


def test_an_interpreter_without_the_engine_is_named(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("this interpreter has torch")
    with pytest.raises(CapacityError, match=f"torch is not installed for {sys.executable}") as caught:
        built("tiny", tmp_path, formats=(".pt2",))
    assert caught.value.code == "conversion_failed"
    assert not list((tmp_path / "zoo").glob("*.pt2"))


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match="interpreter not found: /none/python"):
        built("tiny", tmp_path, formats=(".pt2",), python="/none/python")


@pytest.mark.needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "mobilenet-v2", "bert-mini", "tiny-yolov2", "gpt-step"])
def test_an_exported_program_gives_the_same_numbers(cache: Path, tmp_path: Path, torch_python: str, name: str) -> None:
    path, program = built(name, cache), built(name, cache, formats=(".pt2", ".pt"), python=torch_python)
    graph, axes = graph_and_axes(path)
    # Neither the batch nor the lengths that it was exported with.
    feed = inputs_for(graph, {axis: 3 if axis == "batch" else 11 for axis in axes})
    np.savez(tmp_path / "in.npz", **feed)  # type: ignore[arg-type]
    files = (Path(__file__).with_name("run_pt2.py"), program, tmp_path / "in.npz", tmp_path / "out.npz")
    command = [torch_python, *map(str, files)]
    subprocess.run(command, check=True, capture_output=True)
    found, right = np.load(tmp_path / "out.npz"), outputs_of(path, feed)
    assert set(found) == set(right)
    assert max(relative_error(found[output], right[output]) for output in right) < 1e-3
