"""SARK's words for what Prony has its own words for: compute units, queues, workers, jobs, results and their columns.

The server that speaks to Dumont workers and the agent that speaks to a SARK orchestrator both take them from here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AliasGenerator, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from prony.model.base import Noun
from prony.model.recipe import Measure

# Word -> the engine and its units, best first: "GPU (ONNX)" means whichever maker's card is there.
COMPUTE_UNITS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CPU (ONNX)": ("onnxruntime", ("cpu",)),
    "GPU (ONNX)": ("onnxruntime", ("cuda", "rocm", "migraphx")),
    "DirectML (ONNX)": ("onnxruntime", ("directml",)),
    "OpenVINO (ONNX)": ("onnxruntime", ("openvino",)),
    "GPU (CoreML)": ("coreml", ("coreml-gpu",)),
    "Neural Engine (CoreML)": ("coreml", ("neural-engine",)),
}
# What a Dumont without ONNX Runtime offers, and what it takes a job for that names no unit.
PLAIN_CPU = "CPU"
RESULTS_QUEUE = "results"
DEFAULT_RUNS = 10

# The columns of every CSV, in their order.
CSV_COLUMNS = (
    "CreatedUtc", "Status", "UploadId", "FileName", "FileSize", "DeviceName", "DeviceYear", "Soc", "Ram",
    "DiscreteGpu", "VRam", "DeviceOs", "DeviceOsVersion", "ComputeUnits",
    "LoadMsMedian", "LoadMsStdDev", "LoadMsAverage", "LoadMsFirst", "PeakLoadRamUsage",
    "InferenceMsMedian", "InferenceMsStdDev", "InferenceMsAverage", "InferenceMsFirst", "PeakInferenceRamUsage",
    "JobId",
)  # fmt: skip


class WorkerStatus(StrEnum):
    """What a worker says of itself."""

    ACTIVE = "active"
    BUSY = "busy"
    CLEANUP = "cleanup"
    FAULTY = "faulty"


def engine_units(word: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the engine and its units behind a compute unit's word, None where nobody knows the word."""
    return COMPUTE_UNITS.get("CPU (ONNX)" if word == PLAIN_CPU else word)


def word_of(engine: str, unit: str) -> str | None:
    """Return what SARK calls an engine's unit, None where it has no word for it."""
    return next((word for word, (own, units) in COMPUTE_UNITS.items() if own == engine and unit in units), None)


def capability_queue(word: str) -> str:
    """Return the list in Redis that jobs for a compute unit wait in."""
    plain = word.lower().replace(" ", "_").replace("(", "").replace(")", "")
    return f"jobs:capability:{plain}"


def worker_queue(worker_id: str) -> str:
    """Return the list in Redis that jobs for one worker wait in."""
    return f"jobs:{worker_id}"


def held_queue(queue: str, worker_id: str) -> str:
    """Return the list in which Prony's own worker keeps what it took from a queue until its result is handed in."""
    return f"{queue}:held:{worker_id}"


def worker_id_of(device_info: Mapping[str, Any]) -> str:
    """Return the id of whoever registers with this description: the same description has the same id."""
    asked = ("DeviceName", ""), ("Soc", ""), ("Ram", 0), ("DeviceOs", "")
    described = "_".join(str(device_info.get(key, default)) for key, default in asked)
    identity = str(device_info.get("UDID") or described)
    # Not for secrecy: every SARK gives these ids, and people have written them into campaigns.
    return "worker-" + hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()[:12]


def measure_of(runs: int) -> Measure:
    """Return how much is measured for a job that asks for so many inference runs."""
    return Measure(runs=runs)


def _text(value: object) -> object:
    """Take a number for its text: a worker says Ram "23", another one 23."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[str | None, BeforeValidator(_text)]
Figure = Annotated[float | None, Field(allow_inf_nan=False, ge=0)]
# In Prony snake case, on the wire as SARK has it.
_PASCAL = AliasGenerator(alias=to_pascal)


class Registration(Noun):
    """A worker introduces itself."""

    device_name: str
    ip_address: str
    capabilities: tuple[str, ...]
    device_info: dict[str, Any]


class CampaignJob(Noun):
    """A job as a worker is told it."""

    job_id: Annotated[str, Field(min_length=1, max_length=200)]
    model_url: Annotated[str, Field(min_length=1)]
    campaign_id: str | None = None
    compute_unit: str = PLAIN_CPU
    num_inference_runs: Annotated[int, Field(ge=1, le=1_000_000)] = DEFAULT_RUNS


class DeviceInfo(Noun):
    """A device as workers describe it; what it does not know is None, and empty where a worker says so."""

    model_config = ConfigDict(alias_generator=_PASCAL, populate_by_name=True, serialize_by_alias=True)

    device_name: Text = None
    device_year: Text = None
    soc: Text = None
    ram: Text = None
    discrete_gpu: Text = None
    v_ram: Text = None
    device_os: Text = None
    device_os_version: Text = None


class WorkerDevice(DeviceInfo):
    """The same with what tells one device from another that is built alike."""

    udid: Annotated[str | None, Field(alias="UDID")] = None


class WorkerResult(DeviceInfo):
    """What a worker reports of a job: milliseconds, MiB and percent; a failed one has a remark and no figures."""

    job_id: Annotated[str, Field(alias="job_id", min_length=1, max_length=200)]
    campaign_id: Annotated[str | None, Field(alias="campaign_id")] = None
    worker_id: Annotated[str | None, Field(alias="worker_id")] = None
    status: Annotated[Literal["Complete", "Failed"], Field(alias="status")]
    remark: Annotated[str | None, Field(alias="remark")] = None
    file_name: Text = None
    file_size: Annotated[int | None, Field(ge=0)] = None
    compute_units: Text = None
    load_ms_median: Figure = None
    load_ms_min: Figure = None
    load_ms_max: Figure = None
    load_ms_average: Figure = None
    load_ms_std_dev: Figure = None
    load_ms_first: Figure = None
    peak_load_ram_usage: Figure = None
    average_load_cpu_percent: Figure = None
    inference_ms_median: Figure = None
    inference_ms_min: Figure = None
    inference_ms_max: Figure = None
    inference_ms_average: Figure = None
    inference_ms_std_dev: Figure = None
    inference_ms_first: Figure = None
    peak_inference_ram_usage: Figure = None
    average_inference_cpu_percent: Figure = None
    # Not of Dumont, which measures no GPU; where it was measured, it is told.
    peak_inference_vram_usage: Figure = None
    average_inference_gpu_percent: Figure = None
