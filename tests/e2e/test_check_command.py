"""`prony check` looks as far as `prony run` does before the first measurement, and names the line."""

from __future__ import annotations

import json
import os
import sys
import venv
from pathlib import Path

import pytest

from prony.plugins.models.zoo.llm import write_gguf
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from servers import pattern_models as patterns
from servers.commands import call_prony as prony
from servers.needs import lack
from servers.packaged import environment

MODEL = """name: r
workload:
  kind: model
  model: {model}
  engine: {engine}
  unit: {unit}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    whole = patterns.save_digits(tmp_path / "whole.onnx").read_bytes()
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "cut.onnx").write_bytes(whole[:300])
    (tmp_path / "page.onnx").write_text("<html>not found</html>")
    (tmp_path / "models").mkdir()
    patterns.save_digits(tmp_path / "models" / "net.onnx")
    return tmp_path


@pytest.mark.parametrize(
    ("model", "engine", "unit", "told"),
    [
        ("gone.onnx", "onnxruntime", "cpu", ("4: workload.model: model not found:", "did you mean")),
        ("empty.onnx", "onnxruntime", "cpu", ("4: workload.model:", "is empty")),
        ("cut.onnx", "onnxruntime", "cpu", ("4: workload.model:", "not a complete ONNX file")),
        ("page.onnx", "onnxruntime", "cpu", ("4: workload.model:", "not a complete ONNX file")),
        ("models", "onnxruntime", "cpu", ("4: workload.model:", "is a folder", "choose a model in it: ", "net.onnx")),
        ("zoo:mobilnet", "onnxruntime", "cpu", ("4: workload.model:", "did you mean zoo:mobilenet-v2?")),
        ("whole.onnx", "litert", "cpu", ("4: workload.model:", "does not load whole.onnx")),
        ("whole.onnx", "onnxruntim", "cpu", ("5: workload.engine: no engine is called", "did you mean onnxruntime?")),
        ("zoo:tiny", "onnxruntime", "abacus", ("6: workload.unit:", "no unit 'abacus'")),
        ("whole.onnx", "onnxruntime", "cpu", ("2: workload.inputs:", "or with prony bench: --shape x=1x1x28x28")),
    ],
)
def test_what_a_model_lacks_is_told_with_its_line(
    folder: Path, model: str, engine: str, unit: str, told: tuple[str, ...]
) -> None:
    recipe = folder / "r.yaml"
    recipe.write_text(MODEL.format(model=model, engine=engine, unit=unit))
    said = prony("check", recipe, code=2).stderr
    assert said.startswith(f"error: {recipe}:{told[0]}")
    for part in told[1:]:
        assert part in said


@pytest.mark.skipif(sys.platform == "darwin", reason="needs an engine that cannot be here")
def test_a_value_of_the_matrix_is_told_where_it_stands(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("""name: r
workload: {kind: model, model: zoo:tiny}
matrix:
  workload.engine:
    - onnxruntime
    - coreml
""")
    assert f"{recipe}:6: matrix.workload.engine[1]: coreml " in prony("check", recipe, code=2).stderr


def test_a_recipe_that_is_right_says_what_was_assumed_and_keeps_nothing(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    patterns.save_model(
        tmp_path / "net.onnx", {"x": (patterns.FLOAT, ("batch", 3, "height", "width"))},
        [patterns.conv("w", "x", "y")], {"w": patterns.weights(4, 3, 3, 3)},
    )  # fmt: skip
    recipe.write_text("name: r\nworkload: {kind: model, model: net.onnx, engine: onnxruntime}\n")
    done = prony("check", recipe)
    assert done.stdout == "r: 1 model job\n"
    assert "guess: input x is 1x3x224x224" in done.stderr
    assert "guess: input x" in json.loads(prony("check", recipe, "--json").stdout)["notes"][0]
    assert json.loads(prony("list", "--json").stdout) == []
    recipe.write_text("name: r\nworkload: {kind: model, model: gone.onnx, engine: onnxruntime}\n")
    prony("check", recipe, "--no-trial")


def test_scripts_targets_and_recipes_for_several_machines_are_looked_at_too(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: r\nworkload:\n  kind: script\n  command: nosuchprogram\n")
    assert (
        f"{recipe}:4: workload.command: program nosuchprogram not found on PATH"
        in prony("check", recipe, code=2).stderr
    )
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_text("")
    recipe.write_text("name: r\nworkload:\n  kind: script\n  command: python3 -u trian.py\n  directory: scripts\n")
    said = prony("check", recipe, code=2).stderr
    assert f"{recipe}:4: workload.command: trian.py not found in {tmp_path / 'scripts'}" in said
    assert "did you mean train.py?" in said
    recipe.write_text("name: r\nworkload:\n  kind: script\n  command: python3 train.py\n")
    assert "train.py not found: the command runs in an empty folder" in prony("check", recipe, code=2).stderr
    recipe.write_text("name: r\nworkload:\n  kind: script\n  command: python3 x.py\n  directory: gone\n")
    assert f"{recipe}:5: workload.directory: folder or file not found:" in prony("check", recipe, code=2).stderr
    recipe.write_text("name: r\nworkload:\n  kind: script\n  command: 'true'\n  launch: {nodes: 2}\n")
    assert "there are no agents without a server" in prony("check", recipe, code=2).stderr
    recipe.write_text("name: r\nworkload:\n  kind: script\n  command: 'true'\n")
    prony("check", recipe)
    assert "no target is called 'moon'" in prony("check", recipe, "--on", "moon", code=2).stderr


LLM = """name: r
workload:
  kind: llm
  model: {model}
  engine: {engine}
"""


@pytest.mark.parametrize(
    ("model", "engine", "told"),
    [
        ("gone.gguf", "llamacpp", ("4: workload.model: model not found:", "did you mean ")),
        ("empty.gguf", "llamacpp", ("4: workload.model:", "empty.gguf is empty")),
        ("cut.gguf", "llamacpp", ("4: workload.model: cut.gguf is cut short",)),
        ("page.gguf", "llamacpp", ("4: workload.model:", "is not a GGUF file")),
        ("words", "llamacpp", ("4: workload.model: words is a folder, but llamacpp loads .gguf",)),
        ("zoo:llm-1", "llamacpp", ("4: workload.model: unknown zoo model", "did you mean zoo:llm-1m?")),
        ("zoo:tiny", "llamacpp", ("4: workload.model: zoo:tiny cannot be built as .gguf",)),
        ("words", "transformers", ("4: workload.model: words has no weights",)),
        ("zoo:llm-1m", "mlx", ("5: workload.engine: mlx ",)),
    ],
)
def test_what_a_language_model_lacks_is_told_with_its_line(
    tmp_path: Path, model: str, engine: str, told: tuple[str, ...]
) -> None:
    write_gguf(LLM_ZOO["llm-1m"], tmp_path / "whole.gguf")
    (tmp_path / "cut.gguf").write_bytes((tmp_path / "whole.gguf").read_bytes()[:-100_000])
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "page.gguf").write_text("<html>not found</html>")
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "config.json").write_text("{}")
    recipe = tmp_path / "r.yaml"
    recipe.write_text(LLM.format(model=model, engine=engine))
    said = prony("check", recipe, code=2).stderr
    assert said.startswith(f"error: {recipe}:{told[0]}")
    for part in told[1:]:
        assert part in said
    assert "hint:" in said


def test_a_language_model_is_tried_without_its_weights(tmp_path: Path) -> None:
    python = environment() / "python"
    if not list(environment().parent.glob("lib/python3*/site-packages/xllamacpp")):
        lack("xllamacpp", f"no xllamacpp here: pip install xllamacpp into {environment().parent}")
    prony("engines", "add", "llamacpp", "--python", str(python))
    recipe = tmp_path / "r.yaml"
    recipe.write_text(LLM.format(model="zoo:llm-1b", engine="llamacpp"))
    assert prony("check", recipe).stdout == "r: 1 llm job\n"
    write_gguf(LLM_ZOO["llm-1m"], tmp_path / "whole.gguf")
    recipe.write_text(LLM.format(model="whole.gguf", engine="llamacpp"))
    prony("check", recipe)
    for key, value, told in (
        ("unit", "abacus", "llamacpp has no unit 'abacus' on this machine"),
        ("prompt", "3000", "the recipe needs 3002 tokens of context, but the model has 2048"),
        ("precision", "fp16", "llamacpp computes in the types of the file"),
        ("draft", "gone.gguf", "model not found:"),
    ):
        recipe.write_text(LLM.format(model="whole.gguf", engine="llamacpp") + f"  {key}: {value}\n")
        assert f"{recipe}:6: workload.{key}: {told}" in prony("check", recipe, code=2).stderr
    begin = LLM.format(model="whole.gguf", engine="llamacpp")
    recipe.write_text(f"{begin}  task: perplexity\n  prompts:\n    file: gone.jsonl\n")
    assert f"{recipe}:7: workload.prompts: data set not found:" in prony("check", recipe, code=2).stderr
    recipe.write_text(LLM.format(model="https://127.0.0.1:9/x.gguf", engine="llamacpp"))
    assert "x.gguf was not looked for: prony run fetches it" in prony("check", recipe).stderr


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("test: gpu-memory", "4: workload.test: torch is broken"),
        ("test: gpu-memory\n  unit: cuda-1", "5: workload.unit: torch is broken"),
        ("test: cpu-gemm\n  library: torch", "5: workload.library: torch is broken"),
        ("test: cpu-gemm\n  library: troch", "5: workload.library: must be one of numpy, torch"),
        ("test: cpu-gem", "4: workload.test: must be one of cpu-memory"),
        ("test: disk\n  path: nowhere", "5: workload.path: folder not found:"),
        ("test: disk\n  size: 900TiB", "5: workload.size: "),
    ],
)
def test_what_a_hardware_test_lacks_is_told_with_its_line(tmp_path: Path, keys: str, told: str) -> None:
    if "torch is broken" in told:
        venv.create(tmp_path / "bare", with_pip=False)  # an interpreter with nothing, whatever this one has
        prony("engines", "add", "torch", "--python", tmp_path / "bare" / "bin" / "python", code=None)
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"name: r\nworkload:\n  kind: hardware\n  {keys}\n")
    said = prony("check", recipe, code=2).stderr
    assert said.startswith(f"error: {recipe}:{told}")
    assert "hint:" in said


@pytest.mark.parametrize(
    ("keys", "told", "hint"),
    [
        ("service: redis\n  settings:\n    program: /nowhere/redis",
         "6: workload.settings.program: redis cannot be started on this machine: program not found: /nowhere/redis",
         "to fix this: "),
        ("service: redis\n  settings:\n    program: ./redis", "6: workload.settings.program: redis cannot be started",
         "to fix this: "),
        ("service: ollama\n  settings: {model: x}", "4: workload.service: ollama cannot be started", "to get it: "),
        ("service: redis\n  settings:\n    image: redis", "6: workload.settings.image: redis cannot be started", ""),
        ("service: llamacpp\n  settings:\n    model: gone.gguf\n    program: /bin/sh",
         "6: workload.settings.model: model not found:", "settings.model is a GGUF file"),
        ("service: llamacpp\n  settings:\n    model: page.gguf\n    program: /bin/sh",
         "6: workload.settings.model:", "a GGUF file starts with the letters GGUF"),
        ("service: transformers\n  settings:\n    model: gone\n    program: /bin/sh",
         "6: workload.settings.model: model not found:", "settings.model is a folder or a GGUF file"),
        ("service: command\n  settings:\n    command: ./serve --port {port}",
         "6: workload.settings.command: program not found: ./serve", "start settings.command with"),
    ],
)  # fmt: skip
def test_what_a_service_lacks_is_told_with_its_line(tmp_path: Path, keys: str, told: str, hint: str) -> None:
    (tmp_path / "page.gguf").write_text("<html>not found</html>")
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"name: r\nworkload:\n  kind: service\n  {keys}\n")
    nothing = os.environ | {"PATH": "/nowhere"}
    said = prony("check", recipe, code=2, environment=nothing).stderr
    assert said.startswith(f"error: {recipe}:{told}")
    assert f"hint: {hint}" in said or not hint
    assert said.count("cannot be started") <= 1
    assert "note:" not in said
    prony("check", recipe, "--no-trial", environment=nothing)


@pytest.mark.slow
def test_a_gpu_that_is_not_here_is_told_with_the_units_that_are(tmp_path: Path, torch_python: str) -> None:
    prony("engines", "add", "torch", "--python", torch_python)
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: r\nworkload:\n  kind: hardware\n  test: gpu-memory\n  unit: cuda-77\n")
    said = prony("check", recipe, code=2).stderr
    assert f"{recipe}:5: workload.unit: torch has no unit 'cuda-77' on this machine" in said
    assert "hint: available: cpu" in said
    for keys in ("test: cpu-gemm\n  library: torch", "test: cpu-gemm", "test: disk"):
        recipe.write_text(f"name: r\nworkload:\n  kind: hardware\n  {keys}\n")
        assert prony("check", recipe).stdout == "r: 1 hardware job\n"


def test_of_a_recipe_for_a_target_only_the_files_that_travel_are_looked_for(tmp_path: Path) -> None:
    prony("targets", "add", "box", "--kind", "local", "--prefix", tmp_path / "there", "--python", sys.executable)
    recipe = tmp_path / "r.yaml"
    recipe.write_text(LLM.format(model="gone.gguf", engine="mlx"))
    said = prony("check", recipe, "--on", "box", code=2).stderr
    assert f"{recipe}:4: workload.model: file not found: {tmp_path / 'gone.gguf'}" in said
    recipe.write_text(LLM.format(model="zoo:llm-1m", engine="mlx"))
    assert "the jobs were not tried, because they run on box" in prony("check", recipe, "--on", "box").stderr


def test_an_address_and_a_trace_of_a_load_are_looked_at_too(tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    begin = "name: r\nworkload:\n  kind: service\n  driver: http\n"
    recipe.write_text(f"{begin}  endpoint: ftp://127.0.0.1\n")
    assert (
        f"{recipe}:5: workload.endpoint: 'ftp://127.0.0.1' is not an endpoint" in prony("check", recipe, code=2).stderr
    )
    recipe.write_text(f"{begin}  endpoint: http://127.0.0.1\nload:\n  replay: {{file: gone.jsonl}}\n")
    assert f"{recipe}:7: load.replay.file: trace not found:" in prony("check", recipe, code=2).stderr
