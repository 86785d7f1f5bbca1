"""SARK's words are the same on both sides, and the same as those of SARK itself."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from prony.compat.sark.nouns import (
    COMPUTE_UNITS,
    CSV_COLUMNS,
    CampaignJob,
    WorkerResult,
    capability_queue,
    engine_units,
    word_of,
    worker_id_of,
    worker_queue,
)
from prony.plugins.engines import coreml
from prony.plugins.engines.onnxruntime_providers import KNOWN


def test_the_words_are_those_that_the_engines_give_their_units() -> None:
    engines = {("onnxruntime", unit.name): unit.seed_name for unit in KNOWN}
    engines |= {("coreml", name): word for name, (_, _, _, word) in coreml._UNITS.items()}
    named = {pair: word for pair, word in engines.items() if word}
    told = {(engine, unit): word for word, (engine, units) in COMPUTE_UNITS.items() for unit in units}
    assert told == named
    assert {pair: word_of(*pair) for pair in engines} == engines


@pytest.mark.parametrize(
    ("word", "queue"),
    [
        ("CPU (ONNX)", "jobs:capability:cpu_onnx"),
        ("GPU (ONNX)", "jobs:capability:gpu_onnx"),
        ("GPU (CoreML)", "jobs:capability:gpu_coreml"),
        ("Neural Engine (CoreML)", "jobs:capability:neural_engine_coreml"),
        ("DirectML (ONNX)", "jobs:capability:directml_onnx"),
        ("OpenVINO (ONNX)", "jobs:capability:openvino_onnx"),
        ("CPU", "jobs:capability:cpu"),
    ],
)
def test_every_compute_unit_has_the_queue_that_dumont_polls(word: str, queue: str) -> None:
    assert capability_queue(word) == queue
    assert engine_units(word) is not None


def test_a_word_that_nobody_knows_is_no_unit() -> None:
    assert engine_units("TPU (ONNX)") is None
    assert word_of("onnxruntime", "tensorrt") is None


def test_a_worker_is_known_by_its_udid_or_else_by_its_description() -> None:
    assert worker_id_of({"UDID": "abc", "Soc": "M2"}) == "worker-900150983cd2"
    alike = {"DeviceName": "vm", "Soc": "", "Ram": "23", "DeviceOs": "Linux", "DeviceOsVersion": "#1 SMP @0"}
    assert worker_id_of(alike) == worker_id_of(alike | {"DeviceOsVersion": "#2", "UDID": ""})
    assert worker_id_of(alike) != worker_id_of(alike | {"Ram": "24"})
    assert worker_queue("worker-1") == "jobs:worker-1"


def test_a_result_of_dumont_is_read_and_written_as_it_is() -> None:
    sent = {
        "job_id": "campaign-1-job-0", "campaign_id": "campaign-1", "worker_id": "worker-1", "status": "Complete",
        "FileName": "tiny.onnx", "FileSize": 2707, "ComputeUnits": "CPU (ONNX)", "DeviceName": "vm",
        "DeviceOs": "Linux", "DeviceOsVersion": "#1 SMP @0", "DeviceYear": "", "Soc": "", "Ram": "23",
        "DiscreteGpu": "", "VRam": "", "LoadMsMedian": 4.5, "LoadMsMin": 4.5, "LoadMsMax": 4.5,
        "LoadMsAverage": 4.5, "LoadMsStdDev": 0.0, "LoadMsFirst": 4.5, "PeakLoadRamUsage": 66.1,
        "AverageLoadCpuPercent": 80.0, "InferenceMsMedian": 0.02, "InferenceMsMin": 0.01, "InferenceMsMax": 17.0,
        "InferenceMsAverage": 1.75, "InferenceMsStdDev": 5.1, "InferenceMsFirst": 17.0,
        "PeakInferenceRamUsage": 66.4, "AverageInferenceCpuPercent": 90.5,
    }  # fmt: skip
    result = WorkerResult.read(sent)
    assert result.inference_ms_median == 0.02
    assert result.model_dump(exclude_none=True) == sent
    assert set(CSV_COLUMNS) - sent.keys() == {"CreatedUtc", "Status", "UploadId", "JobId"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "Complete"},
        {"job_id": "", "status": "Complete"},
        {"job_id": "a", "status": "Cancelled"},
        {"job_id": "a", "status": "Complete", "LoadMsMedian": float("nan")},
        {"job_id": "a", "status": "Complete", "InferenceMsMedian": -1},
    ],
)
def test_a_result_that_says_nothing_sound_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        WorkerResult.read(wrong)


@pytest.mark.parametrize("runs", [0, -1, "abc"])
def test_a_job_with_an_impossible_number_of_runs_is_refused(runs: object) -> None:
    with pytest.raises(ValidationError):
        CampaignJob.read({"job_id": "a", "model_url": "https://x/y.onnx", "num_inference_runs": runs})
