"""What a worker reports, as a result folder that Prony's own analysis reads."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prony.app.results import summary_of
from prony.compat.sark.face.intake import Report, write_report
from prony.compat.sark.nouns import WorkerResult
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.model.result import Failure
from prony.store.folder import FolderContents, read_folder
from servers.sark import complete

BEGAN, ENDED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)
JOB = Job(
    id="campaign-7-job-0",
    experiment_id="campaign-7",
    name="tiny",
    workload=ModelWorkload(kind="model", model="https://example.org/tiny.onnx", engine="onnxruntime"),
    measure=Measure(runs=12),
)


def written(folder: Path, **changes: Any) -> FolderContents:
    told = WorkerResult.read(complete(JOB.id, "worker-1") | changes)
    write_report(folder / "r", JOB, Report(told, "{}", "worker-1", BEGAN, ENDED))
    return read_folder(folder / "r")


def failure(folder: Path, **changes: Any) -> Failure:
    found = written(folder, **changes).result.failure
    assert found is not None
    return found


def test_figures_have_the_keys_of_estimates_and_the_count_that_was_asked_for(tmp_path: Path) -> None:
    found = written(tmp_path, InferenceMsMedian=3.0, LoadMsMedian=40.0, InferenceMsFirst=9.0).result
    assert found.reported is not None
    assert found.reported.count == 12
    assert found.reported.figures["inference_ms.p50"] == 3.0
    assert found.reported.figures["load_ms.p50"] == 40.0
    assert found.reported.figures["first_inference_ms.p50"] == 9.0
    assert (found.started_at, found.ended_at) == (BEGAN, ENDED)


def test_what_a_worker_does_not_say_of_its_device_stays_unknown(tmp_path: Path) -> None:
    device = written(tmp_path, Soc="", Ram="", DeviceOsVersion=None).environment.device
    assert (device.hardware.cpu.model, device.hardware.memory_mib, device.hardware.cpu.logical_cores) == (None,) * 3
    assert device.hardware.cpu.usable_cores is None
    assert device.software.os_version is None


def test_what_it_says_is_kept(tmp_path: Path) -> None:
    device = written(tmp_path, Soc="M2", Ram="16", DiscreteGpu="RTX", DeviceName="lab").environment.device
    assert (device.name, device.hardware.cpu.model, device.hardware.memory_mib) == ("lab", "M2", 16384)
    assert [gpu.name for gpu in device.hardware.gpus] == ["RTX"]


@pytest.mark.parametrize(
    ("remark", "whose"),
    [
        ("Failed to download model: HTTP Error 503", "prony"),
        ("HTTPSConnectionPool: Max retries exceeded", "prony"),
        ("[Errno 28] No space left on device", "prony"),
        ("Unsupported operator Foo", "sut"),
        ("", "sut"),
    ],
)
def test_a_failure_of_the_surroundings_is_not_the_models(tmp_path: Path, remark: str, whose: str) -> None:
    assert failure(tmp_path, status="Failed", remark=remark).whose == whose


def test_a_success_without_a_number_is_none(tmp_path: Path) -> None:
    found = failure(tmp_path, InferenceMsMedian=None)
    assert (found.code, found.whose) == ("empty_report", "prony")


def test_the_verdict_is_suspect_and_a_failure_void(tmp_path: Path) -> None:
    written(tmp_path / "good")
    written(tmp_path / "bad", status="Failed", remark="broken")
    assert summary_of(tmp_path / "good" / "r").verdict.grade == "suspect"
    bad = summary_of(tmp_path / "bad" / "r")
    assert (bad.verdict.grade, bad.estimates) == ("void", {})
    assert bad.verdict.reasons[0].text == "Nothing ran: broken. `prony logs ID` prints the log."


def test_a_report_is_recorded_without_loading_what_reads_samples(tmp_path: Path) -> None:
    program = """
import sys
from datetime import datetime
from pathlib import Path
from prony.app.fleet.unpack_result import summarise_written
from prony.compat.sark.face.intake import Report, write_report
from prony.compat.sark.nouns import WorkerResult
from prony.model.job import Job

folder, job, reported, when = sys.argv[1:]
report = Report(WorkerResult.model_validate_json(reported), "{}", "worker-1", *[datetime.fromisoformat(when)] * 2)
arrived = summarise_written(write_report(Path(folder), Job.read_json(job), report))
print(arrived.state.value, "polars" in sys.modules)
"""
    reported = WorkerResult.read(complete(JOB.id, "worker-1")).model_dump_json()
    given = [str(tmp_path / "r"), JOB.model_dump_json(), reported, BEGAN.isoformat()]
    done = subprocess.run([sys.executable, "-c", program, *given], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["complete", "False"], done.stderr
    assert read_folder(tmp_path / "r").result.reported is not None
