"""Write what a Dumont worker reports as a result folder that says who measured, and what is not known."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from prony import __version__
from prony.compat.sark.nouns import WorkerResult
from prony.model.device import Cpu, Device, Environment, Gpu, Hardware, Software, State
from prony.model.job import Job
from prony.model.result import Failure, Reported, ResultState
from prony.runner.folder import ResultFolder
from prony.store.folder import FolderContents

BY = "a SARK worker"
# The keys of estimates, and the field that each is told in. Its load is one single sample: a median and nothing more.
_FIGURES = {
    "inference_ms.p50": "inference_ms_median",
    "inference_ms.mean": "inference_ms_average",
    "inference_ms.min": "inference_ms_min",
    "inference_ms.max": "inference_ms_max",
    "inference_ms.sd": "inference_ms_std_dev",
    "first_inference_ms.p50": "inference_ms_first",
    "load_ms.p50": "load_ms_median",
    "rss_load_peak_mib.p50": "peak_load_ram_usage",
    "rss_peak_mib.p50": "peak_inference_ram_usage",
    "vram_peak_mib.p50": "peak_inference_vram_usage",
}
# A download that failed may go well next time; a model that failed does not.
_SURROUNDINGS = re.compile(
    r"download|connection|timed? ?out|temporar|unreachable|name resolution|http error|max retries|no space left", re.I
)


@dataclass(frozen=True)
class Report:
    """`original` is the text as it came; `worker_id` is who says so."""

    result: WorkerResult
    original: str
    worker_id: str
    leased_at: datetime
    received_at: datetime


def write_report(folder: Path, job: Job, report: Report) -> FolderContents:
    """Write a folder as the runner would: whole, with no samples, because none were told. Return what it holds."""
    told = report.result
    made = ResultFolder.begin(folder, job, prony_version=__version__, started_at=report.leased_at)
    environment = _environment(report)
    made.write_environment(environment)
    figures = {key: getattr(told, name) for key, name in _FIGURES.items()}
    known = {key: float(value) for key, value in figures.items() if value is not None}
    failure = _failure(told, known)
    made.update(
        reported=Reported(by=BY, figures={} if failure else known, count=job.measure.runs, original=report.original),
        failure=failure,
    )
    made.finish_without_samples(ResultState.FAILED if failure else ResultState.COMPLETE, report.received_at)
    return FolderContents(folder, job, made.result, environment)


def _failure(told: WorkerResult, figures: dict[str, float]) -> Failure | None:
    if told.status == "Failed":
        remark = (told.remark or "the worker gave no reason")[:2000]
        is_around = _SURROUNDINGS.search(remark) is not None
        return Failure(code="worker_failed", message=remark, phase="worker", whose="prony" if is_around else "sut")
    if "inference_ms.p50" not in figures:
        return Failure(
            code="empty_report",
            message="the worker says Complete and gives no InferenceMsMedian",
            hint="look at the worker's own log",
            phase="worker",
            whose="prony",
        )
    return None


def _environment(report: Report) -> Environment:
    """Describe the device in the worker's own words; what they do not say stays unknown."""
    told = report.result
    gpus = (Gpu(index=0, name=told.discrete_gpu, vendor=""),) if told.discrete_gpu else ()
    hardware = Hardware(
        cpu=Cpu(model=told.soc or None, architecture=""), memory_mib=_memory_mib(told.ram), gpus=gpus,
        machine=told.device_name or None,
    )  # fmt: skip
    software = Software(
        os=told.device_os or "", os_version=told.device_os_version or None, kernel="", python="", prony=""
    )
    device = Device(
        name=told.device_name or report.worker_id,
        hardware_id=f"sark-{report.worker_id}"[:128],
        software_id=f"sark-{hashlib.sha256(software.model_dump_json().encode()).hexdigest()[:12]}",
        hardware=hardware,
        software=software,
    )
    return Environment(device=device, state=State(taken_at=report.received_at), clock={})


def _memory_mib(ram: str | None) -> int | None:
    """Workers tell whole gigabytes, as text."""
    try:
        gib = float(ram or "")
    except ValueError:
        return None
    return round(gib * 1024) if 0 < gib < 10**6 else None
