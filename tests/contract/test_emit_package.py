"""The package `prony-emit`: one copy of the code, the version of Prony, and every Python from 3.8 on that is here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lanes import only_slowly
from prony import __version__
from prony.kinds.script.runner.reading import Reading
from prony.runner.script_folders import offer
from servers.needs import lack

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packages" / "prony-emit"
SOURCES = {
    "prony_emit.py": "src/prony/emit.py",
    "benchmarkai/__init__.py": "src/prony/compat/benchmark_ai/shim.py",
    "LICENSE": "LICENSE",
}
SCRIPT = """
import benchmarkai
import prony_emit

prony_emit.emit({"loss": 0.5, "steps": 3}, step=1, unit={"loss": "nat"})
benchmarkai.emit({"accuracy": 0.75})
"""


def find_python(version: str) -> str:
    """Return an interpreter from the PATH, or one that pyenv keeps."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = (str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")))
    # The launcher of pyenv is on the PATH also for versions that it is not told to start.
    found = next(
        (one for one in (shutil.which(f"python{version}"), *kept) if one is not None and does_start(one)), None
    )
    if found is None:
        lack(f"python{version}", f"no python{version} on the PATH or in the folder of pyenv")
    return found


def does_start(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def run_script(python: str, path: Path, folder: Path, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PRONY_"))}
    environment = kept | {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"} | variables
    command = [python, "-W", "error", "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_there_is_one_copy_of_the_code_and_one_version() -> None:
    for name, source in SOURCES.items():
        assert (PACKAGE / name).resolve() == (ROOT / source).resolve()
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    assert project["dependencies"] == []
    assert project["requires-python"] == ">=3.8"


@pytest.mark.parametrize("version", ["3.8", *only_slowly("3.9", "3.10"), "3.11", *only_slowly("3.12", "3.13", "3.14")])
def test_a_script_reports_numbers_on(version: str, tmp_path: Path) -> None:
    python = find_python(version)
    printed = run_script(python, PACKAGE, tmp_path)
    first, second = map(json.loads, printed.splitlines())
    assert first == {"metrics": {"loss": 0.5, "steps": 3.0}, "step": 1.0, "unit": {"loss": "nat"}}
    assert second == {"accuracy": 0.75}
    emitted = tmp_path / "emitted"
    emitted.touch()
    assert run_script(python, PACKAGE, tmp_path, PRONY_EMIT_FILE=str(emitted)) == ""
    reading = Reading(())
    reading.follow_emitted(emitted).follow(is_last=True)
    assert {row.name: row.value for row in reading.rows} == {"loss": 0.5, "steps": 3.0, "accuracy": 0.75}


def test_under_prony_a_script_imports_it_without_installing_it(tmp_path: Path) -> None:
    assert "accuracy" in run_script(sys.executable, offer(tmp_path / "python"), tmp_path)
