"""What every test may ask for: a home of its own, and an engine that misbehaves on order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from prony.ports import plugins

FAULTY = Path(__file__).parent / "faulty"


@pytest.fixture(scope="session")
def torch_python() -> str:
    """Return an interpreter that has PyTorch; without one the test is skipped, or fails where it must be there."""
    found = os.environ.get("PRONY_TEST_TORCH_PYTHON") or (sys.executable if find_spec("torch") else "")
    if not found:
        reason = "no PyTorch here: `make torch`, and PRONY_TEST_TORCH_PYTHON=.venv-torch/bin/python"
        if "torch" in os.environ.get("PRONY_TEST_REQUIRES", ""):
            pytest.fail(f"required, but {reason}")
        pytest.skip(reason)
    return found


@pytest.fixture(autouse=True)
def prony_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the person's own results."""
    home = tmp_path / "home"
    monkeypatch.setenv("PRONY_HOME", str(home))
    return home


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Register the faulty engine, here and in child processes; return a maker of model files for it."""
    monkeypatch.syspath_prepend(str(FAULTY))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAULTY), os.environ.get("PYTHONPATH", "")]))
    plugins.found.cache_clear()

    def model(plan: str) -> Path:
        path = tmp_path / "model.faulty"
        path.write_text(plan)
        return path

    yield model
    plugins.found.cache_clear()
