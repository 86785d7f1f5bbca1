"""The steps of `action.yml`, run with bash in a repository with two commits, one of which is truly slower."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from servers.github_action import run_action
from servers.quiet_machine import quiet_environment
from servers.repositories import Repository, make_repository

ACTION = Path(__file__).parents[2] / "action.yml"
RECIPE = """
name: pipeline
workload:
  kind: script
  command: python bench.py
  directory: .
  metrics: [{name: step_ms, unit: ms, better: lower}]
measure: {repeats: 1}
"""
BENCH = """
import time
import prony
from pipeline import step
begin_ns = time.perf_counter_ns()
step()
prony.emit({"step_ms": (time.perf_counter_ns() - begin_ns) / 1e6})
"""
TEST = """
from pipeline import step

def test_step(prony_bench):
    prony_bench(step)
"""
# Much longer than a busy machine holds up the quick one.
SLOW_S = 0.3
STEP = "import time\n\ndef step():\n    time.sleep({seconds})\n"
# What each side is is told by a file that `prepare` writes: it was run in both.
PREPARE = "echo prepared > prepared.txt"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A project at its first commit, in which a step takes 2 ms; its package is below src."""
    made = make_repository(tmp_path / "project")
    for name, text in (("speed/recipe.yaml", RECIPE), ("speed/bench.py", BENCH), ("tests/test_step.py", TEST)):
        (made.path / name).parent.mkdir(exist_ok=True)
        (made.path / name).write_text(text)
    made.commit("src/pipeline.py", STEP.format(seconds=0.002))
    return made


def act(repository: Repository, base: str, tmp_path: Path, inputs: Mapping[str, str]) -> tuple[int, str, str]:
    """Return the exit code, what was said, and the page of the job."""
    temporary, page = tmp_path / "runner", tmp_path / "summary.md"
    temporary.mkdir(exist_ok=True)
    page.touch()
    environment = quiet_environment(tmp_path) | {
        "RUNNER_TEMP": str(temporary), "GITHUB_STEP_SUMMARY": str(page), "COLUMNS": "200",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "prony.api.pytest_plugin",
    }  # fmt: skip
    given = {"install": "none", "python": sys.executable, "pairs": "5", "prepare": PREPARE, **inputs}
    event = {"event.pull_request.base.sha": base, "action_path": str(ACTION.parent)}
    code, said = run_action(ACTION, repository.path, given, event=event, environment=environment)
    assert not (temporary / "prony-base").exists()
    return code, said, page.read_text()


@pytest.mark.slow
def test_a_slower_commit_fails_by_its_recipe_and_the_page_of_the_job_says_so(
    repository: Repository, tmp_path: Path
) -> None:
    base = repository.head
    repository.commit("src/pipeline.py", STEP.format(seconds=SLOW_S))
    code, said, page = act(repository, base, tmp_path, {"recipe": "speed/recipe.yaml"})
    assert code == 1, said
    assert f"comparing {repository.head} with {base}" in said
    assert "step p50 got worse" in said
    assert ": regression" in page
    assert "step p50 got worse" in page.replace("\\", "")
    assert (repository.path / "prepared.txt").exists()


@pytest.mark.slow
def test_a_commit_that_changes_nothing_passes(repository: Repository, tmp_path: Path) -> None:
    base = repository.head
    repository.commit("src/pipeline.py", f"# changed\n{STEP.format(seconds=0.002)}")
    code, said, page = act(repository, base, tmp_path, {"recipe": "speed/recipe.yaml", "threshold": "50%"})
    assert code == 0, said
    assert "step" in page
    assert "got worse" not in page


@pytest.mark.slow  # ten sessions of pytest; the recipe above takes the same way
def test_a_slower_commit_fails_by_its_tests(repository: Repository, tmp_path: Path) -> None:
    base = repository.head
    repository.commit("src/pipeline.py", STEP.format(seconds=SLOW_S))
    code, said, page = act(repository, base, tmp_path, {"pytest": "tests --prony-time 0.02s"})
    assert code == 1, said
    assert "FAILED tests/test_step.py::test_step - Failed: slower than before: test_step p50 got worse" in said
    assert ": regression" in page


@pytest.mark.slow
def test_a_recipe_that_the_base_lacks_is_only_run(repository: Repository, tmp_path: Path) -> None:
    base = repository.head
    repository.commit("speed/new.yaml", RECIPE)
    code, said, page = act(repository, base, tmp_path, {"recipe": "speed/new.yaml"})
    assert code == 0, said
    assert "the base has no speed/new.yaml yet" in said
    assert "pipeline" in page


def test_neither_a_recipe_nor_tests_is_told(repository: Repository, tmp_path: Path) -> None:
    code, said, _ = act(repository, repository.head, tmp_path, {})
    assert code == 2
    assert "give one of the inputs recipe and pytest" in said


def test_a_base_that_a_shallow_clone_lacks_is_fetched(repository: Repository, tmp_path: Path) -> None:
    base = repository.head
    repository.commit("src/pipeline.py", STEP.format(seconds=0.02))
    shallow = repository.clone(tmp_path / "shallow", "--depth=1")
    _, said, _ = act(shallow, base, tmp_path, {})
    assert f"comparing {repository.head} with {base}" in said


def test_a_new_branch_is_compared_with_the_commit_before(repository: Repository, tmp_path: Path) -> None:
    before = repository.head
    repository.commit("src/pipeline.py", STEP.format(seconds=0.02))
    _, said, _ = act(repository, "0" * 40, tmp_path, {})
    assert f"comparing {repository.head} with {before}" in said
