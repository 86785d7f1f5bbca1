"""Collect the contents of `environment.json`: this machine as it is now."""

from __future__ import annotations

import os
from pathlib import Path

from prony.instruments.clock import clock_facts
from prony.instruments.device import detect
from prony.instruments.preflight import quick_state
from prony.model.calibration import Calibration
from prony.model.device import Environment
from prony.runner.folder import write_noun


def keep_calibration(cache: Path, calibration: Calibration) -> str:
    """Write a calibration where a runner finds it without a database; return its id."""
    path = _calibration_file(cache, calibration.id)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_noun(path, calibration)
    return calibration.id


def _kept_calibration(cache: Path, calibration_id: str | None) -> Calibration | None:
    path = _calibration_file(cache, calibration_id or "")
    return Calibration.read_json(path.read_text(encoding="utf-8")) if calibration_id and path.exists() else None


def _calibration_file(cache: Path, calibration_id: str) -> Path:
    return cache / "calibrations" / f"{Path(calibration_id).name}.json"


def look_around(home: Path, calibration_id: str | None = None, cache: Path | None = None) -> Environment:
    """Return what two results must share to be comparable; a job's repository and its model's checksum are added for
    each."""
    return Environment(
        device=detect(),
        state=quick_state(home=home),
        clock=clock_facts(),
        calibration_id=calibration_id,
        calibration=None if cache is None else _kept_calibration(cache, calibration_id),
        labels=_machine_labels(os.environ.get("PRONY_LABELS", "")),
    )


def _machine_labels(text: str) -> dict[str, str]:
    """Read `cost_per_hour=2.5,rack=7`; what has no equals sign is a label without a value."""
    pairs = (piece.partition("=") for piece in text.split(",") if piece.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}
