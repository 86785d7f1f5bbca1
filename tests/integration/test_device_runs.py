"""A model on a device that works beside the host: every time of it is told, from samples to words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from prony.app.results import summary_of
from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Grade, Summary
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.model.result import Result
from servers.commands import call_prony

Model = Callable[[str], Path]


def run(model: Path, folder: Path) -> tuple[Result, Summary, Path]:
    job = Job(
        id="d-000", experiment_id="d", name="t",
        workload=ModelWorkload(kind="model", model=str(model), engine="faulty", unit="device"),
        measure=Measure(runs=12, warmup=2, repeats=2, check=False, energy_window="100ms"),
    )  # fmt: skip
    (folder / "job.json").write_text(job.model_dump_json())
    done = call_prony("exec", str(folder / "job.json"), "--out", str(folder / "out"))
    assert done.returncode == 0, done.stderr
    out = folder / "out"
    result = Result.read_json((out / "result.json").read_bytes())
    return result, summary_of(out), out


def codes(summary: Summary) -> dict[str, str]:
    return {reason.code: reason.text for reason in summary.verdict.reasons}


def test_times_of_the_device_the_launch_and_the_copies_are_told_apart(faulty: Model, tmp_path: Path) -> None:
    result, summary, out = run(faulty("device:200/2000"), tmp_path)
    value = {key: one.value for key, one in summary.estimates.items()}
    exact = {
        "device_ms": 2.0, "inference_ms": 2.2, "launch_ms": 0.2, "launch_share": 0.2 / 2.2,
        "copy_in_ms": 0.1, "copy_out_ms": 0.3, "roundtrip_ms": 2.5,
    }  # fmt: skip
    assert {name: value[f"{name}.p50"] for name in exact} == pytest.approx(exact)
    assert value["hot_ms.p50"] == pytest.approx(2.0, rel=0.01)  # the next is queued while the device works
    assert value["throughput_per_s.p50"] == pytest.approx(1000 / value["hot_ms.p50"])
    assert value["copy_out_gb_s.p50"] == pytest.approx(10)
    assert (value["vram_weights_mib.p50"], value["vram_run_peak_mib.p50"], value["vram_reserved_mib.p50"]) == (1, 3, 4)
    assert "energy_j.p50" not in value
    told = codes(summary)
    assert told["device_bound"] == (
        "Device-bound: of 2.2 ms, the host takes 0.2 ms to queue the work, and the device works for 2 ms."
    )
    assert "does not show which GPU" in told["no_energy"]
    assert result.version == 3
    assert result.effective is not None
    assert result.effective.outputs_at == "device"
    rows = dict(pl.read_parquet(out / "samples.parquet")["phase"].cast(pl.String).value_counts().iter_rows())
    assert rows["launch"] == rows["device"] == rows["measure"] == 12 * len(result.repetitions)


def test_fixed_work_on_the_card_is_timed_beside_each_repetition(faulty: Model, tmp_path: Path) -> None:
    result, summary, _ = run(faulty("device:200/2000 canary:400/400/402"), tmp_path)
    for one in result.repetitions:
        for reading in (one.canary_before, one.canary_after):
            assert reading is not None
            assert (reading.gpu_compute_ms, reading.gpu_memory_ms) == (0.4, 0.8)
            assert reading.gpu_held_up == pytest.approx(0.0017, abs=1e-4)
    assert (summary.canary["gpu_compute_ms"], summary.canary["gpu_memory_ms"]) == (0.4, 0.8)
    assert not any("foreign_gpu" in text for one in result.repetitions for text in one.contamination)


def test_a_card_that_works_for_others_is_noticed_without_their_names(faulty: Model, tmp_path: Path) -> None:
    result, _, _ = run(faulty("device:200/2000 canary:400/400/1600"), tmp_path)
    for one in result.repetitions:
        (told,) = (text for text in one.contamination if text.startswith("foreign_gpu"))
        assert "waited for 50% of its time" in told


def test_a_host_that_is_slower_than_the_device_is_called_launch_bound(faulty: Model, tmp_path: Path) -> None:
    _, summary, _ = run(faulty("device:2000/100"), tmp_path)
    assert "options.mode: graph" in codes(summary)["launch_bound"]


def test_an_engine_that_does_not_wait_for_its_device_gives_a_void_number(faulty: Model, tmp_path: Path) -> None:
    _, summary, _ = run(faulty("device:10/5000 wait:never"), tmp_path)
    assert summary.verdict.grade is Grade.VOID
    assert "did not wait" in codes(summary)["not_waited"]


def test_launches_that_vary_between_the_passes_are_no_missing_wait(faulty: Model, tmp_path: Path) -> None:
    _, summary, _ = run(faulty("device:1000/1200 wait:never"), tmp_path)
    assert "launch_bound" in codes(summary)
    assert "not_waited" not in codes(summary)


def test_without_such_a_device_nothing_of_it_is_told(faulty: Model, tmp_path: Path) -> None:
    result, summary, _ = run(faulty("check:fine"), tmp_path)
    assert not {"device_ms.p50", "launch_ms.p50", "hot_ms.p50", "vram_weights_mib.p50"} & summary.estimates.keys()
    assert all(one.gpu is None for one in result.repetitions)
    assert "leaves its outputs on the host" in codes(summary)["host_copies"]  # its unit is not the CPU
