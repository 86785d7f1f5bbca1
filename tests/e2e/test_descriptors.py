"""Benchmark AI descriptors as a person runs them: the examples, as they are, with real scripts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from servers.commands import call_prony

EXAMPLES = Path(__file__).parents[2] / "recipes" / "benchmark-ai"


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))


def run(*arguments: str | Path, code: int = 0) -> tuple[dict[str, Any], str]:
    done = call_prony("run", "--json", "--no-report", "--no-container", *arguments, code=code)
    return json.loads(done.stdout) if done.stdout else {}, done.stderr


def test_a_hello_world_runs_here_in_both_forms() -> None:
    folder = EXAMPLES / "hello-world"
    final, said = run(folder / "descriptor.toml")
    (job,) = final["jobs"]
    assert (job["state"], final["experiment"]["dialect"]) == ("complete", "benchmark-ai")
    assert job["estimates"]["elapsed.p50"]["unit"] == "s"
    assert job["estimates"]["epoch.p50"]["value"] == 4
    note = next(one for one in final["experiment"]["notes"] if "hardware.instance_type" in one)
    assert f"note: {note}" in said
    assert note.startswith(f"{folder / 'descriptor.toml'}:11: ")
    old, _ = run(folder / "descriptor-2019.toml", "--script", folder / "scripts")
    (again,) = old["jobs"]
    assert again["estimates"]["accuracy.p50"]["value"] == job["estimates"]["accuracy.p50"]["value"]


@pytest.mark.slow
def test_a_server_and_its_client_tell_the_metrics_of_both() -> None:
    found, _ = run(EXAMPLES / "inference" / "descriptor.toml")
    (job,) = found["jobs"]
    assert job["state"] == "complete"
    assert job["estimates"]["Requests2XX.p50"]["value"] == 50
    assert job["estimates"]["response_time.p50"]["value"] > 0


def test_a_distributed_run_has_two_processes_that_tell_their_ranks() -> None:
    found, _ = run(EXAMPLES / "horovod" / "descriptor.toml")
    (job,) = found["jobs"]
    assert job["state"] == "complete"
    (repetition,) = job["result"]["repetitions"]
    assert sorted(end["rank"] for end in repetition["ends"]) == [0, 1]


SCRIPT_MODE = """
spec_version = "0.1.0"
[info]
description = "script mode"
[hardware]
instance_type = "t3.small"
strategy = "single_node"
[env]
docker_image = "python:3-alpine"
[ml]
benchmark_code = "$(BAI_SCRIPTS_PATH)/CODE"
"""


def test_script_mode_keeps_the_name_of_the_folder_and_runs_an_entrypoint_that_is_no_program(tmp_path: Path) -> None:
    """As `anubis --submit descriptor-script-mode.toml --script src` does."""
    descriptor, source = tmp_path / "descriptor-script-mode.toml", tmp_path / "src"
    descriptor.write_text(SCRIPT_MODE.replace("CODE", "src/entrypoint.sh"))
    source.mkdir()
    entrypoint = source / "entrypoint.sh"
    entrypoint.write_text("#!/bin/sh\npython3 $BAI_SCRIPTS_PATH/src/hello.py\n")
    entrypoint.chmod(0o644)
    (source / "hello.py").write_text("from benchmarkai import emit\nemit({'accuracy': 0.5})\n")
    found, said = run(descriptor, "--script", source)
    (job,) = found["jobs"]
    assert (job["state"], job["estimates"]["accuracy.p50"]["value"]) == ("complete", 0.5)
    assert "note: image python:3-alpine is not used: the command runs directly on this machine" in said


def test_script_mode_takes_one_file_too(tmp_path: Path) -> None:
    descriptor, script = tmp_path / "descriptor.toml", tmp_path / "hello.py"
    descriptor.write_text(SCRIPT_MODE.replace("$(BAI_SCRIPTS_PATH)/CODE", "python3 $(BAI_SCRIPTS_PATH)/hello.py"))
    script.write_text("import os\nfrom benchmarkai import emit\nemit({'files': len(os.listdir('.'))})\n")
    (job,) = run(descriptor, "--script", script)[0]["jobs"]
    assert (job["state"], job["estimates"]["files.p50"]["value"]) == ("complete", 1)


def test_without_an_engine_a_descriptor_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": "/nowhere"}
    descriptor = EXAMPLES / "hello-world" / "descriptor.toml"

    def prony(*words: str) -> subprocess.CompletedProcess[str]:
        return call_prony(*words, code=None, environment=environment)

    done = prony("run", str(descriptor))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "image python:3 needs a container engine, but no container engine is on PATH" in done.stderr
    assert "--no-container" in done.stderr
    checked = prony("check", str(descriptor))
    assert checked.returncode == 0
    assert "prony run would fail on this machine: image python:3 needs a container engine" in checked.stderr
    allowed = prony("check", str(descriptor), "--no-container")
    assert "image python:3 is not used: the command runs directly on this machine" in allowed.stderr
    assert "refuses" not in allowed.stderr
    assert json.loads(prony("list", "--json").stdout) == []


def test_a_wrong_descriptor_is_told_with_its_lines_and_exits_2(tmp_path: Path) -> None:
    wrong = tmp_path / "descriptor.toml"
    wrong.write_text('spec_version = "0.1.0"\n[info]\ndescription = 3\n[env]\ndocker_image = "x"\nports = [1]\n')
    found, _ = run(wrong, code=2)
    told = {problem["path"]: (problem["line"], problem["message"]) for problem in found["error"]["problems"]}
    assert told == {
        "info.description": (3, "must be text, not 3"),
        "env.ports": (6, "unknown key"),
        "hardware": (1, "is missing: the machine that it needs"),
    }
