"""`prony targets clean` at a real sshd and a real Slurm: nothing is left behind, and nothing that runs is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from executor_runs import target_options

from lanes import only_slowly
from prony.app.targets import add_target
from prony.model.target import CleanedTarget
from prony.store.home import Home
from prony.store.lock import try_file_lock
from servers.commands import call_prony
from servers.waiting import wait_for

pytest_plugins = ["executor_fixtures"]
# It runs until the file `gate` of its test is there.
RECIPE = """\
name: there
workload:
  kind: script
  command: "sh -c 'echo speed=1; touch {folder}/running; until [ -e {folder}/gate ]; do sleep 0.05; done'"
  metrics: [{{name: speed, pattern: "speed=([0-9]+)"}}]
measure: {{repeats: 1, warmup: 0}}
place: {{on: there}}
"""


@pytest.fixture(params=["ssh", *only_slowly("slurm")])
def prefix(request: pytest.FixtureRequest, tmp_path: Path, prony_home: Path) -> Path:
    """Name a target of each kind; return its folder there."""
    options = target_options(request.param, request, tmp_path / "there")
    add_target(Home(prony_home).create(), "there", {"kind": request.param, **options})
    return tmp_path / "there"


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[[str], Path]:
    """Return a maker of recipes, each with a folder for its gate."""

    def write(name: str) -> Path:
        (tmp_path / name).mkdir()
        path = tmp_path / f"{name}.yaml"
        path.write_text(RECIPE.format(folder=tmp_path / name))
        return path

    return write


def start_killed(recipe: Path) -> None:
    """Run a recipe until it measures at its target, and kill whoever submitted and follows it."""
    words = [sys.executable, "-P", "-m", "prony", "run", str(recipe), "--no-report"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            wait_for((recipe.with_suffix("") / "running").exists, "it measures there")
        finally:
            process.kill()


def clean() -> CleanedTarget:
    return CleanedTarget.read_json(call_prony("targets", "clean", "there", "--json").stdout)


def list_runs(prefix: Path) -> list[str]:
    """Return all that lies at the target for runs: folders, locks and halves of uploads."""
    return sorted(path.name for path in (prefix / "runs").iterdir())


def list_files(prefix: Path) -> list[str]:
    """Return the files at the target outside the folders of runs; locks are empty."""
    files = [path.relative_to(prefix) for path in prefix.rglob("*") if path.is_file() and path.stat().st_size]
    return sorted(str(path) for path in files if path.parts[0] != "runs")


def state_of(identity: str) -> str:
    state: str = json.loads(call_prony("show", identity, "--json").stdout)["experiment"]["state"]
    return state


def test_a_run_whose_submitter_was_killed_runs_on_comes_home_and_leaves_nothing(
    prefix: Path, recipe: Callable[[str], Path], tmp_path: Path
) -> None:
    start_killed(recipe("a"))
    before = list_runs(prefix)
    (key,) = clean().left
    assert key in before
    assert list_runs(prefix) == before
    (tmp_path / "a" / "gate").touch()
    wait_for((prefix / "runs" / key / "DONE").exists, "it has ended there")
    assert clean() == CleanedTarget(fetched=(key,))
    assert list_runs(prefix) == list_files(prefix) == []
    assert state_of("last") == "complete"
    assert clean() == CleanedTarget()


def test_cancelled_runs_and_those_of_deleted_experiments_go_and_another_runs_on(
    prefix: Path, recipe: Callable[[str], Path], tmp_path: Path
) -> None:
    cancelled, deleted, kept = (
        call_prony("run", recipe(name), "--detach").stdout.strip() for name in ("cancelled", "deleted", "kept")
    )
    call_prony("cancel", cancelled)
    call_prony("delete", deleted, "--force")
    cleaned = clean()
    keys = {identity: f"prony-{identity}-1-" for identity in (cancelled, deleted, kept)}
    for found, identity in ((cleaned.fetched, cancelled), (cleaned.removed, deleted), (cleaned.left, kept)):
        assert [key.startswith(keys[identity]) for key in found] == [True]
    assert {name.removesuffix(".lock") for name in list_runs(prefix)} == set(cleaned.left)
    (tmp_path / "kept" / "gate").touch()
    call_prony("watch", kept, "--json")
    assert list_runs(prefix) == list_files(prefix) == []
    assert state_of(cancelled) in ("cancelled", "partial")  # partial where it had begun to measure by then


def test_a_check_that_was_killed_leaves_nothing(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    options = target_options("ssh", request, tmp_path / "there")
    add_target(Home(Path(os.environ["PRONY_HOME"])).create(), "there", {"kind": "ssh", **options})
    (tmp_path / "there").mkdir()
    with try_file_lock(tmp_path / "there" / "lock") as is_held:
        assert is_held
        words = [sys.executable, "-P", "-m", "prony", "targets", "check", "there"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            wait_for(lambda: list(tmp_path.glob("there/runs/*/waiting")) != [], "its job waits for the machine")
            assert len(clean().left) == 1
            process.kill()
        assert len(clean().removed) == 1
    assert list_runs(tmp_path / "there") == []
