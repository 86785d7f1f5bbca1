"""A real llama.cpp, whose prefix cache is always on: it tells of it, and `load.cache` does what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servers.commands import call_prony as prony
from servers.packaged import llama_server


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return llama_server(tmp_path_factory.mktemp("llama"))


def run(folder: Path, program: tuple[str, Path], arguments: list[str], **load: Any) -> dict[str, Any]:
    settings = {"program": program[0], "model": str(program[1]), "context": 4096, "parallel": 1, "threads": 1}
    work = {"kind": "service", "service": "llamacpp", "settings": settings | {"arguments": arguments}}
    # One prompt, so that a cache of one slot has the whole of it.
    asked = {"task": "texts", "prompts": {"texts": ["word " * 80], "output_tokens": 2}}
    load = {"closed": {"concurrency": 1}, "requests": 5, "repeats": 2, "warmup": "none"} | load
    path = folder / "recipe.json"
    path.write_text(json.dumps({"name": "llama", "workload": work | asked, "load": load}))
    done = prony("run", path, "--json", "--no-report", code=None)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    return dict(job)


def shares(job: dict[str, Any]) -> list[float]:
    caches = [one["cache"] for one in job["result"]["repetitions"]]
    assert {one["server"] for one in caches} == {"llama.cpp"}
    return [one["hit_tokens"] / one["queried_tokens"] for one in caches]


def codes(job: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in job["verdict"]["reasons"]}


def test_salted_prompts_are_new_to_a_real_cache(program: tuple[str, Path], tmp_path: Path) -> None:
    job = run(tmp_path, program, [])
    assert max(shares(job)) < 0.1
    assert job["estimates"]["cached_share.p50"]["value"] < 0.1
    assert "cache_warm" not in codes(job)


def test_the_same_text_is_answered_from_a_real_cache_and_that_is_told(
    program: tuple[str, Path], tmp_path: Path
) -> None:
    job = run(tmp_path, program, [], same_text=True, cache="cold")
    assert min(shares(job)) > 0.7
    assert job["estimates"]["cached_share.p50"]["value"] > 0.7
    # This server was not told where slots may be saved, and so offers no way to empty them.
    assert {"cache_warm", "cache_not_reset"} <= codes(job)


def test_a_real_cache_is_emptied_before_each_run(program: tuple[str, Path], tmp_path: Path) -> None:
    job = run(tmp_path, program, ["--slot-save-path", f"{tmp_path}/"], same_text=True, cache="cold", requests=1)
    assert shares(job) == [0, 0]
    assert "cache_reset" in codes(job)
