"""Runs of scripts, in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from .staged_runs import Runs


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    # No engine of this machine takes part unless a test puts one on the path.
    monkeypatch.setattr("prony.runner.containers.WITH_APPTAINER", ())
    return Runs(tmp_path)
