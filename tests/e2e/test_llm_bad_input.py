"""`prony llm` with models and prompts that cannot work: each is a recorded failure in words, beside jobs that work."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from prony.plugins.models.zoo.llm import fetch_llm, write_gguf
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from prony.ports.models import GENAI_FOLDER, FetchOptions
from servers.commands import call_prony
from servers.needs import lack
from servers.packaged import environment

QUICK = ("--runs", "1", "--threads", "1", "--no-report", "--json", "--set", "measure.warmup=0")
LIMIT_KIB = 2**20
Failures = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(tmp_path)


def python_with(package: str) -> Path:
    """Return the interpreter that has an engine."""
    if not list(environment().parent.glob(f"lib/python3*/site-packages/{package}")):
        lack(package, f"no {package} here: pip install {package} into {environment().parent}")
    return environment() / "python"


def limit_memory(python: Path) -> Path:
    """Return a program that starts an interpreter under a limit of its address space, as `ulimit -v` sets it."""
    made = Path("limited").absolute()
    # A thread for every core would need a share of the limit of its own.
    made.write_text(f'#!/bin/sh\nulimit -v {LIMIT_KIB}\nOPENBLAS_NUM_THREADS=1 exec {python} "$@"\n')
    made.chmod(0o755)
    return made


def fail_beside_good(good: str, *words: str) -> Failures:
    """Run a grid in which one job works; return the failures of the others by their model and prompt."""
    jobs = json.loads(call_prony("llm", *words, *QUICK, code=1).stdout)["jobs"]
    named = {" ".join(str(value) for value in job["cell"].values()): job for job in jobs}
    worked = named.pop(good)
    assert worked["state"] == "complete"
    assert worked["estimates"]["decode_tok_s.p50"]["value"] > 0
    shown = call_prony("show", "last").stdout
    found = {}
    for name, job in named.items():
        assert job["state"] == "failed"
        found[name] = job["result"]["failure"] or job["result"]["repetitions"][-1]["failure"]
        assert found[name]["hint"]
        assert found[name]["message"] in shown
    return found


def tell(failure: dict[str, Any]) -> tuple[str, str, str]:
    return failure["code"], failure["phase"], failure["message"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the address space of a process is limited on Linux alone")
def test_damaged_foreign_and_too_large_models_and_prompts_fail_in_words() -> None:
    call_prony("engines", "add", "llamacpp", "--python", str(limit_memory(python_with("xllamacpp"))))
    write_gguf(LLM_ZOO["llm-1m"], Path("good.gguf"))
    data = Path("good.gguf").read_bytes()
    Path("cut.gguf").write_bytes(data[:-100_000])
    Path("foreign.gguf").write_bytes(data.replace(b"llama", b"nosuc"))
    # The engine maps the whole file, which is as long as all memory that it may have.
    Path("large.gguf").write_bytes(data)
    os.truncate("large.gguf", 1024 * LIMIT_KIB)
    found = fail_beside_good(
        "16 good.gguf", "good.gguf", "--prompt", "16,3000", "--generate", "4", "--passes", "1",
        "--set", "matrix.workload.model=[good.gguf,cut.gguf,foreign.gguf,large.gguf]",
    )  # fmt: skip
    assert tell(found["3000 good.gguf"]) == (
        "context_exceeded", "load", "the recipe needs 3002 tokens of context, but the model has 2048"
    )  # fmt: skip
    code, phase, message = tell(found["16 cut.gguf"])
    assert (code, phase) == ("damaged_model", "load")
    assert message.startswith("llama.cpp cannot load cut.gguf: tensor 'output.weight' data is not within the file")
    assert tell(found["16 foreign.gguf"]) == (
        "damaged_model", "load", "llama.cpp cannot load foreign.gguf: unknown model architecture: 'nosuc'"
    )  # fmt: skip
    assert tell(found["16 large.gguf"]) == (
        "out_of_memory", "load", "llama.cpp cannot load large.gguf: mmap failed: Cannot allocate memory"
    )  # fmt: skip
    assert "more memory" in found["16 large.gguf"]["hint"]


def test_a_missing_tokenizer_and_a_failing_template_fail_in_words() -> None:
    call_prony("engines", "add", "onnxruntime-genai", "--python", str(python_with("onnxruntime_genai")))
    for name in ("good", "silent", "refusing"):
        made = fetch_llm(LLM_ZOO["llm-1m"], FetchOptions(cache=Path(name).absolute(), formats=(GENAI_FOLDER,)))
        made.path.rename(f"{name}-model")
    Path("silent-model/tokenizer.json").unlink()
    about = json.loads(Path("refusing-model/tokenizer_config.json").read_text())
    about["chat_template"] = "{{ raise_exception('no system message, please') }}"
    Path("refusing-model/tokenizer_config.json").write_text(json.dumps(about))
    found = fail_beside_good(
        "good-model", "good-model", "--engine", "onnxruntime-genai", "--task", "summarize", "--generate", "4",
        "--set", "workload.prompts.articles=1", "--set", "workload.prompts.longest=20",
        "--set", "workload.prompts.output_tokens=4",
        "--set", "matrix.workload.model=[good-model,silent-model,refusing-model]",
    )  # fmt: skip
    assert tell(found["silent-model"]) == (
        "no_tokenizer", "prepare", "onnxruntime-genai could not encode the prompts: the model's folder has no tokenizer"
    )  # fmt: skip
    code, phase, message = tell(found["refusing-model"])
    assert (code, phase) == ("bad_template", "prepare")
    assert message.endswith("the model's chat template fails: no system message, please")
    assert "prompts.system" in found["refusing-model"]["hint"]
