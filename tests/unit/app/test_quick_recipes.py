"""Recipes that are made of a model or a command: which engine, which jobs, and what was assumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.app.choose_engine import EngineChooser, EngineWish
from prony.app.command_recipe import CommandRequest, draft_command_recipe
from prony.app.model_recipe import ModelRequest, draft_model_recipe
from prony.app.quick_recipe import QuickRecipe
from prony.errors import InputError, NotFoundError
from prony.model.assumption import Assumption
from prony.model.device import EngineReport, EngineUnit
from prony.recipe import loads

READY = ("onnxruntime", "openvino")


def inspect(name: str) -> EngineReport:
    """Report the engine as a machine with two of them would."""
    if name not in READY:
        return EngineReport(name=name, python="python", state="missing", reason="no module", hint=f"add {name}")
    unit = EngineUnit(engine=name, unit="cpu", description="", precisions=("default", "fp32"))
    return EngineReport(name=name, python="python", state="ready", version="1.0", units=(unit,))


def draft(folder: Path, *models: str, **asked: object) -> QuickRecipe:
    request = ModelRequest(models=models, **asked)  # type: ignore[arg-type]
    return draft_model_recipe(request, cache=folder / "cache", base=folder, inspect=inspect)


def test_the_plainest_reader_that_is_installed_is_chosen_and_said(tmp_path: Path) -> None:
    quick = draft(tmp_path, "zoo:tiny")
    assert quick.document["workload"] == {"kind": "model", "model": "zoo:tiny", "engine": "onnxruntime"}
    assert quick.document["name"] == "tiny"
    assert "engine onnxruntime 1.0" in quick.assumptions[0].what
    assert [one.flag.split()[0] for one in quick.assumptions] == [
        "--engine", "--unit", "--batch", "--threads", "--precision", "--runs",
    ]  # fmt: skip


def test_what_was_asked_for_is_not_assumed(tmp_path: Path) -> None:
    asked = {"engines": ("openvino",), "units": ("cpu",), "batch_sizes": (8,), "threads": (1,), "precision": "fp32"}
    quick = draft(tmp_path, "zoo:tiny", runs=7, **asked)
    assert quick.assumptions == ()
    workload = loads(quick.text).recipe.workload.model_dump()
    assert (workload["engine"], workload["batch_size"], workload["threads"]) == ("openvino", 8, 1)


def test_a_time_is_shared_by_the_processes_and_lifts_the_number_of_inferences(tmp_path: Path) -> None:
    measure = loads(draft(tmp_path, "zoo:tiny", time_ns=60 * 10**9, repeats=4).text).recipe.measure
    assert (measure.repeats, measure.max_time, measure.runs) == (4, 15 * 10**9, 1_000_000)
    assert loads(draft(tmp_path, "zoo:tiny", time_ns=10**9, runs=3).text).recipe.measure.runs == 3


def test_two_models_are_a_duet_and_three_are_a_matrix(tmp_path: Path) -> None:
    two = loads(draft(tmp_path, "zoo:tiny", "zoo:noop").text)
    assert two.recipe.duet is not None
    assert (two.recipe.duet.a, two.recipe.duet.b) == ({"workload.model": "zoo:tiny"}, {"workload.model": "zoo:noop"})
    three = loads(draft(tmp_path, "zoo:tiny", "zoo:noop", "zoo:mlp", batch_sizes=(1, 2)).text)
    assert len(three.jobs("e")) == 6


def test_several_units_have_a_job_each(tmp_path: Path) -> None:
    request = ModelRequest(models=("zoo:tiny",), units=("cpu", "cpu-1"))

    def inspect_two(name: str) -> EngineReport:
        report = inspect(name)
        second = [one.model_copy(update={"unit": "cpu-1"}) for one in report.units]
        return report.model_copy(update={"units": (*report.units, *second)})

    quick = draft_model_recipe(request, cache=tmp_path / "cache", base=tmp_path, inspect=inspect_two)
    assert [job.cell for job in loads(quick.text).jobs("e")] == [{"workload.unit": "cpu"}, {"workload.unit": "cpu-1"}]


@pytest.mark.parametrize(
    ("asked", "there"), [("cuda-0", "cuda"), ("cuda", "cuda-0"), ("cuda:GPU-1", "cuda-0"), ("cuda-1", "cuda")]
)
def test_the_first_card_has_two_names(tmp_path: Path, asked: str, there: str) -> None:
    def inspect_card(name: str) -> EngineReport:
        report = inspect(name)
        units = tuple(one.model_copy(update={"unit": there}) for one in report.units)
        return report.model_copy(update={"units": units})

    def draft_on_card() -> QuickRecipe:
        request = ModelRequest(models=("zoo:tiny",), units=(asked,))
        return draft_model_recipe(request, cache=tmp_path / "cache", base=tmp_path, inspect=inspect_card)

    if asked == "cuda-1":
        with pytest.raises(InputError, match="no unit 'cuda-1'") as caught:
            draft_on_card()
        assert caught.value.hint == "it has cuda", "this build has what a card needs"
    else:
        assert draft_on_card().document["workload"]["unit"] == asked


def test_all_engines_are_a_matrix_of_those_that_are_ready(tmp_path: Path) -> None:
    quick = draft(tmp_path, "zoo:tiny", engines=("all",))
    assert [job.cell for job in loads(quick.text).jobs("e")] == [{"workload.engine": name} for name in READY]
    chooser = EngineChooser(EngineWish(("all",)), inspect)
    assert chooser.choose("model.tflite", ".tflite") == ("openvino",)
    assert [one.what for one in chooser.assumptions] == ["litert left out: it is missing here"]


@pytest.mark.parametrize(
    ("asked", "told", "hint"),
    [
        ({"engines": ("vllm",)}, "vllm does not read .onnx", "read by onnxruntime"),
        ({"engines": ("torch",)}, "torch is missing here", "add torch"),
        ({"engines": ("onxruntime",)}, "no engine is called", "onnxruntime"),
        ({"units": ("cpu", "cuda")}, "no unit 'cuda'", "cpu"),
        ({"precision": "int8"}, "no precision 'int8'", "fp32"),
    ],
)
def test_an_engine_that_lacks_what_was_asked_for_is_refused(
    tmp_path: Path, asked: dict[str, object], told: str, hint: str
) -> None:
    with pytest.raises(InputError, match=told) as caught:
        draft(tmp_path, "zoo:tiny", **asked)
    assert hint in caught.value.hint


def test_an_engine_that_is_named_takes_a_model_of_the_zoo_in_its_own_format(tmp_path: Path) -> None:
    def inspect_any(name: str) -> EngineReport:
        return inspect("onnxruntime").model_copy(update={"name": name})

    def choose(model: str, *engines: str) -> list[dict[str, object]]:
        request = ModelRequest(models=(model,), engines=engines)
        quick = draft_model_recipe(request, cache=tmp_path / "cache", base=tmp_path, inspect=inspect_any)
        return [job.workload.model_dump(include={"model", "engine"}) for job in loads(quick.text).jobs("e")]

    assert choose("zoo:tiny", "torch") == [{"model": "zoo:tiny", "engine": "torch"}]
    assert [one["engine"] for one in choose("zoo:tiny", "torch", "onnxruntime")] == ["torch", "onnxruntime"]
    (tmp_path / "mine.tflite").write_bytes(b"x")
    with pytest.raises(InputError, match=r"torch does not read \.tflite"):
        choose("mine.tflite", "torch")
    with pytest.raises(InputError, match=r"litert does not read \.onnx"):
        choose("zoo:bert-mini", "litert")


def test_a_model_that_cannot_be_read_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "empty.pt2").touch()
    (tmp_path / "notes.yaml").write_text("name: x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner.onnx").touch()
    (tmp_path / "script.pt").write_text("x")
    cases = {
        "gone.onnx": "model not found:",
        "empty.pt2": "is empty",
        "notes.yaml": "no engine reads .yaml",
        "folder": "is a folder",
        "zoo:tinny": "tinny",
        "script.pt": "torch is missing here: no module",
    }
    hints = {}
    for model, told in cases.items():
        with pytest.raises(InputError, match=told) as caught:
            draft(tmp_path, model)
        hints[model] = caught.value.hint
    assert "prony run notes.yaml" in hints["notes.yaml"]
    assert "inner.onnx" in hints["folder"]
    assert "zoo:tiny" in hints["zoo:tinny"]
    assert hints["script.pt"] == "add torch"
    with pytest.raises(NotFoundError):
        draft(tmp_path, "gone.onnx")


def test_the_recipe_says_what_was_assumed_and_which_key_changes_it(tmp_path: Path) -> None:
    text = draft(tmp_path, "zoo:tiny").text
    assert "# Assumed: batch 1; to change it: workload.batch_size\n" in text


def test_parameters_fill_commands_in_every_combination() -> None:
    lists = {"n": ("1", "2"), "m": ("x", "y")}
    loaded = loads(draft_command_recipe(CommandRequest(("a {n}", "b {n} {m}"), lists, runs=3, warmup=1)).text)
    assert [job.cell["workload.command"] for job in loaded.jobs("e")] == [
        "a 1", "a 2", "b 1 x", "b 1 y", "b 2 x", "b 2 y",
    ]  # fmt: skip
    assert (loaded.recipe.measure.repeats, loaded.recipe.measure.warmup) == (3, 1)


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (CommandRequest(("ls",), {"n": ("1",)}), "no command has {n} in it"),
        (CommandRequest(("",)), "is empty"),
        (CommandRequest(("ls 'x",)), "no closing quotation"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(request_: CommandRequest, told: str) -> None:
    with pytest.raises(InputError, match=told):
        draft_command_recipe(request_)


def test_two_models_with_too_few_runs_are_refused_by_the_name_of_the_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--repeats 2: two models need at least 5 runs"):
        draft(tmp_path, "zoo:tiny", "zoo:noop", repeats=2)


def test_a_word_that_only_a_shell_understands_is_said() -> None:
    told = [one.what for one in draft_command_recipe(CommandRequest(("ls | wc",), warmup=1, runs=3)).assumptions]
    assert told == ["no shell: | is passed to the program as it is"]
    assert not draft_command_recipe(CommandRequest(("sh -c 'ls | wc'",), warmup=1, runs=3)).assumptions


def test_a_guess_is_called_one_in_the_recipe_too() -> None:
    guess = Assumption(what="input x is 1x128", flag="--shape x=1x128", key="workload.inputs.shapes.x", is_guess=True)
    assert QuickRecipe({}, (guess,)).comments == ("# Guess: input x is 1x128; to change it: workload.inputs.shapes.x\n")
