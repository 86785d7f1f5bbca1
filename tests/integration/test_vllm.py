"""vLLM on the CPU, by the recipe as it is shipped, with a model made on the spot. Takes minutes: `make test-slow`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import psutil
import pytest

from servers.needs import lack
from servers.packaged import HERE

ROOT = HERE.parents[1]
# A length that the model has, and no compiler, which takes longer than all the rest.
ARGUMENTS = ["--max-model-len", 512, "--dtype", "float32", "--max-num-seqs", 8, "--enforce-eager"]


@pytest.fixture
def python() -> Path:
    """The interpreter of the environment that vLLM is in."""
    found = Path(os.environ.get("PRONY_TEST_VLLM_PYTHON") or ROOT / ".venv-vllm" / "bin" / "python")
    if not found.with_name("vllm").exists():
        lack("vllm", f"no vLLM beside {found}: `make vllm`, or PRONY_TEST_VLLM_PYTHON")
    return found


@pytest.mark.slow
def test_the_shipped_recipe_finds_the_highest_rate_of_a_real_vllm(
    python: Path, tmp_path: Path, prony_home: Path
) -> None:
    model = tmp_path / "tiny"
    subprocess.run([python, HERE / "tiny_llama.py", model], check=True, capture_output=True)
    settings: dict[str, object] = {
        "model": str(model),
        "model_name": "tiny",
        "python": str(python),
        "arguments": ARGUMENTS,
    }
    settings["environment"] = {"VLLM_CPU_KVCACHE_SPACE": 1}
    load = {"search": {"over": "rate", "low": 1, "high": 2, "probe": "3s"}, "slo": {"ttft_ms.p99": 5000}}
    chosen = {"workload.settings": settings, "load": load, "workload.prompts": {"input_words": 20, "output_tokens": 16}}
    words = [word for path, value in chosen.items() for word in ("--set", f"{path}={json.dumps(value)}")]
    command = [sys.executable, "-m", "prony", "run", str(ROOT / "recipes" / "vllm.yaml"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = prony_home.rglob("result.json")
    result = json.loads(folder.read_text())
    assert result["service"]["version"]
    assert result["service"]["settings"]["model_id"] == "tiny"
    (good, *_) = [one for one in result["repetitions"] if one["state"] == "ok"]
    assert set(good["client"]["causes"]) == {"ok"}
    counters = pl.read_parquet(folder.parent / "telemetry.parquet")["counter"].unique().to_list()
    assert any(name.startswith("vllm:generation_tokens_total") for name in counters)
    left = [process for process in psutil.process_iter(["cmdline"]) if str(model) in (process.info["cmdline"] or [])]
    assert left == []


@pytest.mark.slow
def test_vllm_in_the_process_writes_tokens_and_predicts_as_transformers_does(python: Path, prony_home: Path) -> None:
    base = [sys.executable, "-m", "prony"]
    for name in ("vllm", "transformers"):
        subprocess.run([*base, "engines", "add", name, "--python", python], check=True, capture_output=True)
    asked = ["--engine", "vllm", "--precision", "fp32", "--threads", "1", "--prompt", "64", "--generate", "16"]
    asked += ["--passes", "1", "--runs", "1", "--option", "eager=true"]
    asked += ["--quality", "--reference", "zoo:llm-1m", "--reference-engine", "transformers"]
    done = subprocess.run(
        [*base, "llm", "zoo:llm-1m", *asked, "--json"], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["estimates"]["decode_tok_s.p50"]["value"] > 0
    assert job["estimates"]["kl_nat.mean"]["value"] < 0.002
    (samples,) = prony_home.glob("results/**/samples.parquet")
    stamps = pl.read_parquet(samples).filter(pl.col("name").str.starts_with("token_ms"))
    assert set(stamps.group_by("repetition").len()["len"]) == {16}
