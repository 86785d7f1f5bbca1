"""The pytest plug-in, in sessions of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prony.api import pytest_session
from prony.app.bench import Bench
from servers.commands import call_prony
from servers.quiet_machine import quiet_environment

SPEED = """
import time

def wait(seconds, answer):
    time.sleep(seconds)
    return answer

def test_speed(prony_bench):
    assert prony_bench(wait, {seconds}, answer=3) == 3

def test_steady(prony_bench):
    prony_bench(time.sleep, 0.001)

def test_plain():
    pass
"""
pytest_plugins = ["pytester"]
HEAVY = ("numpy", "pydantic", "polars", "sqlalchemy", "scipy", "matplotlib", "rich")


@pytest.fixture
def imported() -> None:
    """Import what a session within this process would forget again: some of it cannot be imported twice."""
    assert pytest_session
    with Bench.open():
        pass


@pytest.fixture
def inner(imported: None, pytester: pytest.Pytester) -> pytest.Pytester:
    return pytester


def run_pytest(folder: Path, *words: str, code: int = 0) -> str:
    """Run a session as a process on a machine that looks quiet, without other plug-ins, whose import takes seconds."""
    environment = quiet_environment(folder.parent) | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "prony.api.pytest_plugin", "COLUMNS": "200",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def write_project(folder: Path, seconds: float) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_speed.py").write_text(SPEED.format(seconds=seconds))
    return folder


def test_a_function_is_measured_in_the_tests_own_process_and_its_answer_returned(inner: pytest.Pytester) -> None:
    write_project(inner.path, 0.002)
    done = inner.runpytest_inprocess("--prony-time", "0.05s")
    done.assert_outcomes(passed=3)
    said = done.stdout.str()
    shown = re.search(r"test_speed\.py::test_speed: (\d+\.\d+) ms .* a call in one process, ", said)
    # A sleep of 2 ms is never shorter, and on a busy machine longer.
    assert shown is not None, said
    assert 2.0 <= float(shown[1]) < 200
    assert json.loads(call_prony("list", "--json").stdout) == []


def test_a_session_that_does_not_use_the_fixture_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_light.py").write_text(f"""
import sys

def test_light(request):
    assert request.config.pluginmanager.hasplugin("prony.api.pytest_plugin")
    assert [name for name in {HEAVY} if name in sys.modules] == []
""")
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "prony.api.pytest_plugin"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_saved_numbers_are_compared_and_a_regression_fails_its_test(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", 0.002)
    quick = ("--prony-time", "0.02s", "-k", "not plain")
    gates = ("--prony-gate", "test_speed_ms.p50 <= 1000", "--prony-gate", "test_steady_ms.p50 <= 0.1")
    first = run_pytest(project, *quick, *gates, "--prony-save=speed", code=1)
    assert "Gates: 1 failed, 1 passed." in first
    assert "FAILED test_speed.py::test_steady - Failed: gate test_steady_ms.p50 <= 0.1 failed" in first
    assert "1 failed, 1 passed" in first
    assert "pytest --prony-compare=speed" in first
    history = call_prony("history", "speed", "--metric", "test_steady_ms.p50").stdout
    assert "test_steady p50" in history

    write_project(tmp_path / "project", 0.02)
    second = run_pytest(project, *quick, "--prony-compare=speed", code=1)
    assert "FAILED test_speed.py::test_speed - Failed: slower than before: test_speed p50 got worse" in second
    assert "1 failed, 1 passed" in second
    assert "these numbers are not kept" in second
    assert len(json.loads(call_prony("list", "--json").stdout)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prony-compare=nothing"], "no experiment has the name or id 'nothing'"),
        (["--prony-save", "test_speed.py"], "write --prony-save=NAME test_speed.py"),
        (["--prony-compare=a", "--prony-duet=b"], "give one of them"),
        (["--prony-duet=nowhere"], "is not a folder"),
        (["--prony-save=x", "--prony-gate", "speed <> 3"], "gates[0]"),
    ],
)
def test_a_wrong_option_is_told_before_anything_runs(inner: pytest.Pytester, words: list[str], said: str) -> None:
    write_project(inner.path, 0.002)
    done = inner.runpytest_inprocess(*words)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert said in done.stdout.str() + done.stderr.str()
    assert json.loads(call_prony("list", "--json").stdout) == []


def test_one_test_has_one_number(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_twice(prony_bench):\n    prony_bench(int)\n    prony_bench(int)\n")
    done = inner.runpytest_inprocess("--prony-time", "0.01s")
    done.assert_outcomes(failed=1)
    assert "prony_bench was called twice" in done.stdout.str()


@pytest.mark.slow
def test_numbers_of_xdists_workers_are_shown_too(inner: pytest.Pytester) -> None:
    write_project(inner.path, 0.002)
    done = inner.runpytest_inprocess("--prony-time", "0.01s", "-n", "1", "-k", "speed and not steady and not plain")
    assert re.search(r"test_speed\.py::test_speed: \d+\.?\d* ms \[", done.stdout.str())


def test_parallel_workers_are_refused(inner: pytest.Pytester) -> None:
    write_project(inner.path, 0.002)
    done = inner.runpytest_inprocess("--prony-save=x", "-n", "2")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "leave out -n" in done.stderr.str()
