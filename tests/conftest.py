"""What every test may ask for: a home of its own, and an engine that misbehaves on order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prony.ports import plugins

FAULTY = Path(__file__).parent / "faulty"


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
