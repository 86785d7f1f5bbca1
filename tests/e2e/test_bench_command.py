"""`prony bench` and `prony recipe` as a person types them: a model or a command, and no recipe."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from servers.commands import call_prony as prony
from servers.forked import plain_processes

# As little as can be measured: what these tests look at is not how fast it is.
FEW = ("--runs", "3", "--repeats", "1", "--set", "measure.warmup=0", "--set", "measure.check=false")
QUICK = (*FEW, "--no-report")


def write_model(path: Path, *shape: int | str, name: str = "image", reshape_to: Sequence[int] = ()) -> Path:
    """Write an ONNX model of one node whose input has this shape; one that reshapes runs where the sizes agree."""
    given = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("Reshape", [name, "to"], ["y"]) if reshape_to else helper.make_node("Relu", [name], ["y"])
    constants = [helper.make_tensor("to", TensorProto.INT64, [len(reshape_to)], reshape_to)] if reshape_to else []
    graph = helper.make_graph([node], "g", [given], [made], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def bench(*words: str | Path) -> dict[str, Any]:
    return dict(json.loads(prony("bench", *words, "--json").stdout))


def test_a_model_is_an_ordinary_experiment_with_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "my net.onnx", "batch", 3)
    report = bench("my net.onnx", *QUICK)
    assert report["experiment"]["name"] == "my-net"
    flags = [one["flag"] for one in report["assumed"]]
    assert any(flag.startswith("--engine") for flag in flags)
    assert "--batch N" in flags
    shown = prony("show", "last").stdout
    assert "my-net" in shown
    assert "guess" not in shown
    assert "my-net" in prony("history").stdout
    prony("export", "last", "--to", tmp_path / "out")
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any("# Assumed: batch 1" in path.read_text(errors="replace") for path in kept)


def test_a_measured_model_leaves_nothing_in_the_home_of_its_user(tmp_path: Path) -> None:
    """Also where no variable tells a library that this is a build or a test: there it may report to its maker."""
    home, kept = tmp_path / "home", tmp_path / "prony"
    home.mkdir()
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environment |= {"HOME": str(home), "PRONY_HOME": str(kept)}
    with plain_processes():
        prony("bench", write_model(tmp_path / "net.onnx", 1, 3), *QUICK, environment=environment)
    assert kept.is_dir()
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_guessed_size_is_shown_in_the_table_with_what_changes_it(tmp_path: Path) -> None:
    model = write_model(tmp_path / "net.onnx", "batch", 3, "height", "width")
    done = prony("bench", model, *QUICK)
    assert "guess: input image is 1x3x224x224" in done.stderr
    assert "1×3×224×224" in done.stdout  # beside a void number, a column more breaks the words apart
    assert "(guess)" in done.stdout
    assert "--shape image=1x3x224x224" in " ".join(done.stdout.split())


def test_a_size_that_nothing_tells_is_asked_for_and_the_hint_works_as_printed(tmp_path: Path) -> None:
    model = write_model(tmp_path / "net.onnx", "batch", "boxes", "DynamicDimension.1", name="x")
    done = prony("bench", model, *QUICK, code=2)
    assert "unknown size of axis 1, 'boxes'" in done.stderr
    flags = done.stderr.partition("or with prony bench: ")[2].split()
    assert flags == ["--shape", "x=1x128x128"]
    given = prony("bench", model, *QUICK, "--no-save", *flags)
    assert "guess" not in given.stdout + given.stderr
    assert json.loads(prony("list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("axes", "target", "works"),
    [
        (["batch", "sequence"], [1, 77], "--shape x=1x77"),
        (["batch", 3, "height", "width"], [1, 3, 320 * 320], "--shape x=1x3x320x320"),
        (["batch", "sequence"], [1, 12345], "--shape x=1x12345"),
        (["batch", "sequence"], [1, 1000003], "--shape x=1x128"),  # none of those that are tried works
    ],
)
def test_a_model_that_fails_at_a_guessed_size_is_tried_at_others_and_the_hint_works(
    tmp_path: Path, axes: list[int | str], target: list[int], works: str
) -> None:
    model = write_model(tmp_path / "net.onnx", *axes, name="x", reshape_to=target)
    done = prony("bench", model, *QUICK, code=2)
    assert works in done.stderr
    assert json.loads(prony("list", "--json").stdout) == []
    if 1000003 in target:
        assert "other common sizes failed too" in done.stderr
    else:
        prony("recipe", model, *works.split())  # tries it too


def test_all_engines_stand_side_by_side(tmp_path: Path) -> None:
    report = bench(write_model(tmp_path / "net.onnx", 1, 3), *QUICK, "--engines", "all")
    assert {job["cell"]["workload.engine"] for job in report["jobs"]} >= {"onnxruntime", "openvino"}
    assert len(report["winner"]) == 1


def test_of_all_engines_one_that_cannot_load_the_model_is_left_out(tmp_path: Path) -> None:
    given = helper.make_tensor_value_info("t", TensorProto.STRING, [3])
    made = helper.make_tensor_value_info("y", TensorProto.STRING, None)
    node = helper.make_node("StringNormalizer", ["t"], ["y"], case_change_action="UPPER", locale="C")
    graph = helper.make_graph([node], "g", [given], [made])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "text.onnx")
    text = prony("recipe", tmp_path / "text.onnx", "--engines", "all").stdout
    assert "# Assumed: openvino left out: " in text
    assert "  engine: onnxruntime\n" in text
    assert "matrix" not in text


def test_two_models_take_turns_and_the_faster_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "small.onnx", 1, 3)
    write_model(tmp_path / "large.onnx", 1, 3, 1024, 1024)  # a hundred times as slow, on any machine
    few = ("--repeats", "8", "--set", "measure.warmup=2", "--set", "measure.check=false")
    done = prony("bench", "large.onnx", "small.onnx", "--runs", "10", *few, "--no-report")
    assert "small.onnx is faster than" in done.stdout


def test_a_command_runs_where_it_was_typed_and_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input.txt").write_text("x")
    report = bench("--command", "tee -a seen.txt input.txt", "--runs", "3", "--warmup", "1", "--no-report")
    assert (tmp_path / "input.txt").exists()
    assert (tmp_path / "seen.txt").exists()
    assert len(report["jobs"][0]["runs"]["wall_s.p50"]) == 3


@pytest.mark.slow
def test_two_values_of_a_parameter_take_turns_and_every_export_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = prony("bench", "--command", "sleep {s}", "-L", "s", "0.01,0.6", "--runs", "8", "--no-report",
                 "--export", "out/result.md", "--export", "result.csv", "--export", "result.json")  # fmt: skip
    assert "sleep 0.01 is faster than sleep 0.6, which takes" in done.stdout
    written = (tmp_path / "out" / "result.md").read_text()
    assert "sleep 0.01" in written
    assert "Wall time got worse" in written  # the comparison stands in the document too
    assert "wall_s.p50" in (tmp_path / "result.csv").read_text()
    jobs = json.loads((tmp_path / "result.json").read_text())["jobs"]
    low, high = (job["estimates"]["wall_s.p50"]["value"] for job in jobs)
    assert low >= 0.01
    assert high >= 0.6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "nothing to measure"),
        (("zoo:tiny", "--command", "ls"), "a model and a command"),
        (("zoo:tiny", "--warmup", "1"), "--warmup is for commands"),
        (("--command", "ls", "--batch", "2"), "--batch is for models"),
        (("--command", "no-such-program"), "program no-such-program not found on PATH"),
        (("zoo:tiny", "zoo:tiny"), "named twice"),
        (("zoo:tiny", "--time", "5"), "needs a unit"),
        (("zoo:tiny", "--batch", "0"), "not a whole number"),
        (("zoo:tiny", "--shape", "x=1xx2"), "is not INPUT=SIZES"),
        (("zoo:tiny", "--export", "x.docx"), "unknown format"),
        (("no.onnx",), "model not found"),
        (("zoo:tinny",), "tinny"),
        (("zoo:tiny", "--engine", "nosuch"), "no engine is called"),
        (("zoo:tiny", "--engine", "vllm"), "vllm does not read .onnx"),
    ],
)
def test_what_makes_no_sense_is_refused_with_exit_code_2(words: tuple[str, ...], told: str) -> None:
    done = prony("bench", *words, code=2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_model_is_refused_with_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_text("<html>not found</html>")
    (tmp_path / "bad.tflite").write_text("<html>not found</html>")
    for name in ("bad.onnx", "bad.tflite"):
        done = prony("bench", tmp_path / name, code=2)
        assert name in done.stderr
        assert "hint: " in done.stderr
        assert "Traceback" not in done.stderr


def test_the_recipe_that_is_printed_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "net.onnx", "batch", "sequence", name="x")
    text = prony("recipe", "net.onnx", *FEW).stdout
    assert "# Guess: input x is 1x128" in text
    (tmp_path / "my.yaml").write_text(text)
    prony("run", "my.yaml", "--no-report")
    assert "warmup: 0" in text
    assert "copy_files: false" in prony("recipe", "--command", "ls").stdout


def test_a_model_that_is_set_lies_where_it_was_typed_and_not_beside_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipes").mkdir()
    recipe = "name: x\nworkload: {kind: model, model: gone.onnx, engine: onnxruntime}\n"
    (tmp_path / "recipes" / "x.yaml").write_text(f"{recipe}measure: {{runs: 3, repeats: 1, warmup: 0, check: false}}\n")
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "net.onnx", 1, 3)
    prony("run", "recipes/x.yaml", "--set", "workload.model=net.onnx", "--no-report")


def test_the_hint_of_a_wrong_format_lists_pdf_and_every_example_has_one_line() -> None:
    assert "pdf" in prony("report", "--format", "docx", code=2).stderr
    lines = prony("examples").stdout.splitlines()
    assert max(map(len, lines)) <= 120
    assert len(lines) == 1 + len(json.loads(prony("examples", "--json").stdout))
