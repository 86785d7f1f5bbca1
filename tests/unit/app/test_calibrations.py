"""A calibration belongs to its time: a result shows the one that was valid when it was made, and no later one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prony.app.bench import Bench
from prony.instruments.device import detect
from prony.model.calibration import Calibration, describe_disturbance
from prony.model.estimate import Estimate
from prony.report.notes import instrument
from prony.runner.environment import keep_calibration, look_around
from servers.commands import call_prony as prony
from servers.quiet_machine import QUIET_ROOT

RECIPE = {
    "name": "dated",
    "workload": {"kind": "script", "command": ["echo", "loss: 1"], "metrics": [{"name": "loss", "pattern": "(1)"}]},
    "measure": {"repeats": 1, "warmup": 0},
}
BURN = """
import time
end = time.monotonic() + 120
while time.monotonic() < end:
    rest = time.process_time() + 0.02
    while time.process_time() < rest:
        pass
    time.sleep(0.02)
"""
BUSY = ("foreign_cpu: other processes used 99 % of the CPU (at most 5 %)",)


def calibration(identity: str, minutes: int = 0, *, disturbed: tuple[str, ...] = ()) -> Calibration:
    return Calibration(
        id=identity, hardware_id=detect().hardware_id, software_id="s", disturbed=disturbed,
        taken_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes),
        figures={"kernel_noise": Estimate(value=0.01, unit="1", count=20, method="made")},
    )  # fmt: skip


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench.open() as found:
        yield found


def _run(folder: Path) -> dict[str, object] | None:
    path = folder / "recipe.json"
    path.write_text(json.dumps(RECIPE))
    found = json.loads(prony("run", path, "--json", "--no-report").stdout)["calibration"]
    return None if found is None else dict(found)


def _shown() -> dict[str, object] | None:
    found = json.loads(prony("show", "last", "--json").stdout)["calibration"]
    return None if found is None else dict(found)


def test_a_later_calibration_is_not_shown_under_an_earlier_result(bench: Bench, tmp_path: Path) -> None:
    assert _run(tmp_path) is None
    bench.store.save_calibration(calibration("later"))
    assert _shown() is None
    text = prony("show", "last").stdout
    assert "not calibrated when this was measured" in " ".join(text.split())


def test_a_result_carries_the_calibration_that_was_valid_when_it_was_made(bench: Bench, tmp_path: Path) -> None:
    bench.store.save_calibration(calibration("first"))
    made = _run(tmp_path)
    assert made is not None
    assert made["id"] == "first"
    bench.store.save_calibration(calibration("second", 5))
    assert _shown() == made
    (stored,) = bench.home.results.rglob("environment.json")
    assert json.loads(stored.read_text())["calibration"]["figures"]["kernel_noise"]["value"] == 0.01


def test_an_undisturbed_calibration_is_valid_before_a_later_disturbed_one(bench: Bench) -> None:
    bench.store.save_calibration(calibration("quiet"))
    bench.store.save_calibration(calibration("busy", 5, disturbed=BUSY))
    found = bench.store.latest_calibration(detect().hardware_id)
    assert found is not None
    assert found.id == "quiet"


def test_a_disturbed_calibration_says_so_wherever_it_is_shown() -> None:
    busy = calibration("busy", disturbed=BUSY)
    assert "other processes used 99 % of the CPU" in instrument(busy)
    assert "not reliable" in instrument(busy)
    assert describe_disturbance(calibration("quiet")) == ""


def test_a_runner_finds_a_calibration_without_a_database(tmp_path: Path) -> None:
    one = calibration("kept")
    keep_calibration(tmp_path / "cache", one)
    assert look_around(tmp_path, "kept", tmp_path / "cache").calibration == one
    unknown = look_around(tmp_path, "other", tmp_path / "cache")
    assert (unknown.calibration_id, unknown.calibration) == ("other", None)


def test_a_calibration_beside_a_busy_program_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(QUIET_ROOT, raising=False)
    # A quarter of the cores for half of the time is more than what may be used, and leaves most to tests beside this.
    burners = [subprocess.Popen([sys.executable, "-I", "-c", BURN]) for _ in range(max(1, (os.cpu_count() or 1) // 4))]
    try:
        words = [sys.executable, "-m", "prony", "calibrate", "--repeats", "6", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    finally:
        for one in burners:
            one.kill()
            one.wait()
    assert any(text.startswith("foreign_cpu: ") for text in json.loads(done.stdout)["disturbed"])


@pytest.mark.slow  # twenty fresh interpreters
def test_a_deep_calibration_says_how_far_whole_results_lie_apart_and_keeps_it() -> None:
    made = json.loads(prony("calibrate", "--deep", "--repeats", "20", "--json").stdout)
    spread = made["figures"]["session_spread"]
    assert (spread["unit"], spread["count"]) == ("1", 4)
    assert spread["value"] >= 0
    with Bench.open() as found:
        kept = found.store.latest_calibration(detect().hardware_id)
    assert kept is not None
    assert kept.figures["session_spread"].value == spread["value"]
