"""`prony llm` with an engine of known speed, and with a real llama.cpp where it is installed."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import prony
from prony.plugins.models.zoo.llm import write_gguf
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from prony.recipe import load as load_recipe
from servers.commands import call_prony
from servers.needs import lack
from servers.packaged import environment

QUICK = ("--runs", "1", "--passes", "1", "--threads", "1", "--no-report", "--set", "measure.warmup=0")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def run(*words: str | Path, code: int | None = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(call_prony("llm", *words, *QUICK, "--json", code=code).stdout)["jobs"]
    return found


def test_an_engine_of_known_speed_is_no_faster_than_it_can_be_and_every_stamp_is_kept(home: Path) -> None:
    Path("llm-2us-300us.null").touch()
    jobs = run("llm-2us-300us.null", "--prompt", "50", "--generate", "20", "--batch", "1,2", "--quality")
    assert [job["cell"]["workload.batch"] for job in jobs] == [1, 2]
    for job in jobs:
        batch, found = job["cell"]["workload.batch"], job["estimates"]
        assert 0 < found["decode_tok_s.p50"]["value"] <= batch * 1e6 / 300
        assert found["ttft_ms.p50"]["value"] >= batch * 50 * 2 / 1000
        assert found["kl_nat.mean"]["value"] == pytest.approx(0, abs=1e-6)
        assert len(job["result"]["model"]["sha256"]) == 64
    stamps = [pl.read_parquet(path) for path in sorted(home.glob("results/**/samples.parquet"))]
    tokens = [one.filter(pl.col("name").str.starts_with("token_ms")) for one in stamps]
    assert {count for one in tokens for count in one.group_by("repetition").len()["len"]} == {20}
    assert "decode" in call_prony("show", "last").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("missing.gguf",), "model not found:"),
        (("llm-0us-0us-context8.null",), "but the model has 8"),
        (("wrong.null",), "no language model"),
    ],
)
def test_what_cannot_run_is_a_recorded_failure_in_words(words: tuple[str, ...], said: str) -> None:
    for name in ("llm-0us-0us-context8.null", "wrong.null"):
        Path(name).touch()
    (job,) = run(*words, "--engine", "null", code=1)
    assert job["state"] == "failed"
    assert said in job["result"]["failure"]["message"] or said in str(job["result"]["repetitions"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("m.null", "--prompt", "some"), "not a list of numbers"),
        (("m.gguf", "--engine", "onnxruntime"), "does not run language models"),
        (("m.null", "--option", "novalue"), "not KEY=VALUE"),
        (("m.null", "--generate", "1"), "at least 2"),
        (("m.null", "--draft", "lookup", "--batch", "2"), "draft works with one sequence"),
        (("missing.gguf",), "model not found:"),
        (("m.txt",), "no engine supports m.txt"),
    ],
)
def test_options_that_mean_nothing_are_refused(words: tuple[str, ...], said: str) -> None:
    for name in ("m.null", "m.txt"):
        Path(name).touch()
    assert said in call_prony("llm", *words, "--no-report", code=2).stderr


def test_the_example_is_a_grid_of_batches_and_depths() -> None:
    loaded = load_recipe(Path(__file__).parents[2] / "recipes" / "llm.yaml")
    assert len(loaded.jobs("e1")) == 4


@pytest.fixture
def added(home: Path) -> None:
    """The engine, in an interpreter of its own."""
    python = environment() / "python"
    if not list(environment().parent.glob("lib/python3*/site-packages/xllamacpp")):
        lack("xllamacpp", f"no llama.cpp here: pip install xllamacpp into {environment().parent}")
    call_prony("engines", "add", "llamacpp", "--python", str(python))


@pytest.mark.usefixtures("added")
def test_llama_cpp_measures_a_model_of_the_zoo() -> None:
    (job,) = run("zoo:llm-1m", "--engine", "llamacpp", "--prompt", "16", "--generate", "8")
    assert job["estimates"]["decode_tok_s.p50"]["value"] > 0
    assert job["result"]["effective"]["precision"] == "f16"


@pytest.mark.usefixtures("added")
def test_the_service_starts_from_the_engine_where_there_is_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    write_gguf(LLM_ZOO["llm-1m"], Path("model.gguf"))
    recipe = Path(__file__).parents[2] / "recipes" / "llamacpp.yaml"
    sets = [
        f"workload.settings.model={Path('model.gguf').absolute()}", "workload.settings.threads=1",
        "workload.settings.context=2048", "workload.prompts.input_words=5", "workload.prompts.output_tokens=4",
        "load.requests=8", "load.repeats=1",
    ]  # fmt: skip
    words = [word for one in sets for word in ("--set", one)]
    (job,) = json.loads(call_prony("run", recipe, *words, "--json", "--no-report").stdout)["jobs"]
    assert job["estimates"]["ttft_ms.p50"]["value"] > 0


def test_texts_are_predicted_alike_by_an_engine_and_scored_with_an_interval() -> None:
    Path("llm-0us-0us.null").touch()
    texts = [{"id": str(number), "text": "A text of some letters. " * (number + 1)} for number in range(4)]
    Path("texts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in texts))
    sets = ["measure.warmup=0", "workload.prompts.file=texts.jsonl", "workload.prompts.window=32"]
    words = [word for one in sets for word in ("--set", one)]
    told = call_prony("llm", "llm-0us-0us.null", "--task", "perplexity", "--runs", "1", *words, "--no-report", "--json")
    (job,) = json.loads(told.stdout)["jobs"]
    found = job["estimates"]
    assert found["perplexity.mean"]["value"] == pytest.approx(math.exp(found["token_nll.mean"]["value"]))
    assert found["token_nll.mean"]["low"] < found["token_nll.mean"]["high"]
    assert found["bits_per_byte.mean"]["value"] > 0
    assert "output_tokens_per_s.p50" not in found


def test_passes_mean_nothing_to_a_task_that_scores() -> None:
    Path("m.null").touch()
    told = call_prony("llm", "m.null", "--task", "summarize", "--passes", "2", "--no-report", code=2)
    assert "asks every item once" in told.stderr


def test_the_small_server_of_an_engine_is_measured_as_any_other() -> None:
    Path("llm-1us-100us.null").touch()
    entry = Path(prony.__file__).parent / "runner" / "child" / "__main__.py"
    served = "prony.kinds.llm.child.server:main prony.plugins.engines.null:Null --model llm-1us-100us.null --name tiny"
    command = (
        f"{sys.executable} {entry} --call {served} --host 127.0.0.1 --port {{port}} --unit cpu --precision default"
    )
    recipe = {
        "name": "served",
        "workload": {
            "kind": "service", "service": "command", "driver": "openai-chat",
            "settings": {"command": f"{command} --threads 1", "ready": "http://127.0.0.1:{port}/health"},
            "prompts": {"input_words": 5, "output_tokens": 8},
        },
        "load": {"requests": 8, "repeats": 1},
    }  # fmt: skip
    Path("served.json").write_text(json.dumps(recipe))
    (job,) = json.loads(call_prony("run", "served.json", "--json", "--no-report").stdout)["jobs"]
    assert job["estimates"]["error_rate.mean"]["value"] == 0
    assert job["estimates"]["e2e_ms.p50"]["value"] > 0.8
