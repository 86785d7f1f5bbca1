"""The file model source: paths, companion files and advice on mistakes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from prony.errors import InputError, NotFoundError, StoreError
from prony.plugins.models.file import FileSource
from prony.ports.models import FetchOptions, ModelFiles, ModelPolicy
from prony.runner.checksum import checksum


def fetch(
    reference: str, base: Path, *, formats: tuple[str, ...] = (), checksum: str | None = None, keep_bytes: int = 0
) -> ModelFiles:
    policy = ModelPolicy(keep_bytes=keep_bytes)
    options = FetchOptions(cache=base / "cache", formats=formats, base=base, checksum=checksum, policy=policy)
    return FileSource().fetch(reference, options, lambda *_: None)


def model_with_external_data(path: Path) -> Path:
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [], [], [weight])
    model = helper.make_model(graph)
    onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_relative_path_is_relative_to_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/m.tflite").write_bytes(b"x")
    assert fetch("models/m.tflite", tmp_path).path == tmp_path / "models/m.tflite"
    assert fetch("file:models/m.tflite", tmp_path).path == tmp_path / "models/m.tflite"
    assert fetch(str(tmp_path / "models/m.tflite"), Path("/elsewhere")).path == tmp_path / "models/m.tflite"


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "m.tflite").write_bytes(b"x")
    assert fetch("~/m.tflite", Path("/elsewhere")).path == tmp_path / "m.tflite"


def test_a_missing_file_comes_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "mobilenet.onnx").write_bytes(b"x")
    with pytest.raises(NotFoundError, match="model not found") as caught:
        fetch("mobilnet.onnx", tmp_path)
    assert caught.value.hint == "did you mean mobilenet.onnx?"
    with pytest.raises(NotFoundError) as caught:
        fetch("nowhere/m.onnx", tmp_path)
    assert caught.value.hint == f"folder not found: {tmp_path / 'nowhere'}"


def test_a_file_url_is_refused_with_the_path_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        fetch("file:///models/m.onnx", tmp_path)
    assert caught.value.hint == "write the path itself: /models/m.onnx"


def test_external_data_belongs_to_the_model(tmp_path: Path) -> None:
    path = model_with_external_data(tmp_path / "m.onnx")
    assert fetch("m.onnx", tmp_path).files == (path, tmp_path / "weights.bin")


def test_missing_external_data_is_named(tmp_path: Path) -> None:
    model_with_external_data(tmp_path / "m.onnx")
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(NotFoundError, match=r"has its weights in weights\.bin"):
        fetch("m.onnx", tmp_path)


def test_the_weights_of_an_openvino_model_belong_to_it(tmp_path: Path) -> None:
    for name in ("m.xml", "m.bin"):
        (tmp_path / name).write_bytes(name.encode())
    assert fetch("m.xml", tmp_path).files == (tmp_path / "m.xml", tmp_path / "m.bin")


def test_a_package_folder_is_all_its_files(tmp_path: Path) -> None:
    package = tmp_path / "m.mlpackage"
    (package / "Data/weights").mkdir(parents=True)
    (package / "Manifest.json").write_text("{}")
    (package / "Data/weights/weight.bin").write_bytes(b"w")
    found = fetch("m.mlpackage", tmp_path)
    assert found.path == package
    assert found.files == (package / "Data/weights/weight.bin", package / "Manifest.json")


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "m.mlpackage").mkdir()
    with pytest.raises(InputError, match="empty folder"):
        fetch("m.mlpackage", tmp_path)


def test_a_file_that_the_engine_does_not_load_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"x")
    with pytest.raises(InputError, match=r"does not load m\.tflite: it loads \.onnx"):
        fetch("m.tflite", tmp_path, formats=(".onnx",))


def test_the_checksum_of_one_file_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"model")
    right = f"sha256:{sha256(tmp_path / 'm.tflite')}"
    assert fetch("m.tflite", tmp_path, checksum=right).path.name == "m.tflite"
    with pytest.raises(InputError, match="the wrong checksum") as caught:
        fetch("m.tflite", tmp_path, checksum=f"sha256:{'0' * 64}")
    assert caught.value.code == "checksum_mismatch"
    assert caught.value.hint


def test_the_checksum_of_several_files_covers_bytes_and_names(tmp_path: Path) -> None:
    path = model_with_external_data(tmp_path / "m.onnx")
    lines = f"{sha256(path)}  m.onnx\n{sha256(tmp_path / 'weights.bin')}  weights.bin\n"
    right = f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
    assert checksum(fetch("m.onnx", tmp_path, checksum=right).files) == right
    (tmp_path / "weights.bin").write_bytes(b"other")
    with pytest.raises(InputError) as caught:
        fetch("m.onnx", tmp_path, checksum=right)
    assert caught.value.code == "checksum_mismatch"


def test_the_users_file_stays_as_it_was(tmp_path: Path) -> None:
    path = model_with_external_data(tmp_path / "m.onnx")
    before = {item: (item.read_bytes(), item.stat().st_mtime_ns) for item in tmp_path.iterdir()}
    fetch(os.fspath(path), tmp_path)
    assert {item: (item.read_bytes(), item.stat().st_mtime_ns) for item in tmp_path.iterdir()} == before


def test_a_path_that_cannot_be_looked_for_is_refused(tmp_path: Path) -> None:
    for reference in ("x" * 300 + ".onnx", "~nobody-has-this-name/m.onnx", "a\0b.onnx"):
        with pytest.raises(InputError, match=r"cannot be opened|is not a path"):
            fetch(reference, tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    with pytest.raises(InputError, match="is a pipe or a device"):
        fetch("m.onnx", tmp_path)


def test_a_file_that_was_replaced_is_found_by_its_checksum_where_copies_are_kept(tmp_path: Path) -> None:
    model = model_with_external_data(tmp_path / "m.onnx")
    first = fetch("m.onnx", tmp_path, keep_bytes=2**20)
    assert first.path == model
    wanted = checksum(first.files)
    (tmp_path / "weights.bin").write_bytes(bytes(64 * 64 * 4))
    fetch("m.onnx", tmp_path, keep_bytes=2**20)
    found = fetch("m.onnx", tmp_path, checksum=wanted)
    assert found.path != model
    assert [one.name for one in found.files] == ["m.onnx", "weights.bin"]
    assert checksum(found.files) == wanted


def test_a_copy_that_was_damaged_or_never_kept_is_not_taken(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(b"old")
    wanted = f"sha256:{sha256(model)}"
    fetch("m.tflite", tmp_path, keep_bytes=2)  # it is larger
    model.write_bytes(b"new")
    with pytest.raises(InputError, match="has the wrong checksum"):
        fetch("m.tflite", tmp_path, checksum=wanted)
    model.write_bytes(b"old")
    fetch("m.tflite", tmp_path, keep_bytes=3)
    model.write_bytes(b"new")
    (copy,) = (tmp_path / "cache" / "kept").rglob("m.tflite")
    copy.write_bytes(b"odd")
    with pytest.raises(InputError, match="has the wrong checksum"):
        fetch("m.tflite", tmp_path, checksum=wanted)


def test_only_the_last_versions_of_a_file_are_kept(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    for number in range(12):
        model.write_text(str(number))
        fetch("m.tflite", tmp_path, keep_bytes=10)
        (copy,) = (tmp_path / "cache" / "kept").glob(f"*/{sha256(model)}")
        os.utime(copy, (number, number))
    assert len([*(tmp_path / "cache" / "kept").rglob("m.tflite")]) == 8
    assert fetch("m.tflite", tmp_path, checksum=f"sha256:{hashlib.sha256(b'5').hexdigest()}").path != model


def test_a_copy_that_cannot_be_kept_is_no_fault_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"x")
    (tmp_path / "cache").write_bytes(b"not a folder")
    with pytest.raises(StoreError, match="cannot keep a copy of"):
        fetch("m.tflite", tmp_path, keep_bytes=100)
