"""A launcher that is not there: an error, or processes of Prony's own where the recipe allows them."""

from __future__ import annotations

import shutil
import sys

import pytest

from prony.model.result import ResultState

from .staged_runs import Runs, notes, why

TELL = "import os, prony\nprony.emit({'rank': float(os.environ['RANK']), 'size': float(os.environ['WORLD_SIZE'])})\n"


@pytest.fixture(autouse=True)
def no_launcher(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = runs.base / "bin"
    folder.mkdir()
    for name in ("sh", "env"):
        (folder / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(folder))
    runs.write("scripts/tell.py", TELL)


def test_where_mpirun_is_not_there_prony_starts_the_processes_and_says_so(runs: Runs) -> None:
    result = runs.run(
        command=[sys.executable, "tell.py"], directory=str(runs.base / "scripts"),
        launch={"kind": "mpirun", "processes": 2, "fallback": "process"},
    )  # fmt: skip
    assert result.state is ResultState.COMPLETE, result.failure
    assert (sorted(runs.told()["rank"]), runs.told()["size"]) == ([0, 1], [2, 2])
    assert notes(result) == "mpirun not found on PATH: Prony started its 2 processes directly"


def test_without_a_fallback_that_is_an_error(runs: Runs) -> None:
    result = runs.run(
        command=[sys.executable, "tell.py"], directory=str(runs.base / "scripts"),
        launch={"kind": "mpirun", "processes": 2},
    )  # fmt: skip
    assert why(result).code == "no_mpirun"
