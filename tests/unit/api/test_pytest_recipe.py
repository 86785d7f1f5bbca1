"""The recipe that measures tests in fresh processes, and what their metrics are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.api.pytest_child import name_metrics
from prony.api.pytest_recipe import TestRecipe
from prony.errors import InputError


def test_a_metric_is_called_like_its_test_and_by_its_file_where_two_are_alike() -> None:
    assert name_metrics(["a/test_x.py::test_speed", "a/test_x.py::TestIt::test_many[2-b c]"]) == {
        "test_speed_ms": "a/test_x.py::test_speed",
        "test_many_2_b_c_ms": "a/test_x.py::TestIt::test_many[2-b c]",
    }
    assert name_metrics(["a/test_x.py::test_speed", "b.py::test_speed", "b.py::test_other"]) == {
        "a_test_x_test_speed_ms": "a/test_x.py::test_speed",
        "b_test_speed_ms": "b.py::test_speed",
        "test_other_ms": "b.py::test_other",
    }


def test_two_tests_that_differ_in_signs_alone_are_refused() -> None:
    with pytest.raises(InputError, match="same name without its punctuation"):
        name_metrics(["a.py::test[+]", "a.py::test[-]"])


def test_a_duet_runs_each_checkout_with_its_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here / "src", there / "src"):
        folder.mkdir(parents=True)
    made = TestRecipe(here, {"test_speed_ms": "t.py::test_speed"}, "x", other=there, gates=["test_speed_ms.p50 <= 5"])
    recipe = made.load().recipe
    assert recipe.duet is not None
    assert recipe.duet.a == {
        "workload.directory": str(there), "workload.environment.PYTHONPATH": f"{there}:{there / 'src'}",
    }  # fmt: skip
    assert recipe.duet.b["workload.directory"] == str(here)
    assert recipe.duet.pairs == 10


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    made = TestRecipe(tmp_path, {"test_speed_ms": "t.py::test_speed"}, "x", other=tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a folder") as caught:
        made.load()
    assert "git worktree add" in caught.value.hint
