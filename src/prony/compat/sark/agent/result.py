"""Read from a packed result what a SARK worker reports of its job."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from prony.app.results import summary_of
from prony.compat.sark.agent.device import worker_device
from prony.compat.sark.nouns import WorkerResult, word_of
from prony.instruments.samples import TELEMETRY, read_frame
from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Grade, Summary
from prony.model.job import Job
from prony.model.result import Result, ResultState
from prony.store.folder import read_nouns
from prony.store.result_tar import unpack

if TYPE_CHECKING:
    import polars as pl

# SARK's figure -> Prony's estimate. Its RAM is the resident memory of the whole process, imports with it.
_FIGURES = {
    "load_ms_median": "load_ms.p50",
    "load_ms_min": "load_ms.min",
    "load_ms_max": "load_ms.max",
    "load_ms_average": "load_ms.mean",
    "load_ms_std_dev": "load_ms.sd",
    "peak_load_ram_usage": "rss_load_peak_mib.p50",
    "inference_ms_median": "inference_ms.p50",
    "inference_ms_min": "inference_ms.min",
    "inference_ms_max": "inference_ms.max",
    "inference_ms_average": "inference_ms.mean",
    "inference_ms_std_dev": "inference_ms.sd",
    "inference_ms_first": "first_inference_ms.p50",
    "peak_inference_ram_usage": "rss_peak_mib.p50",
    "peak_inference_vram_usage": "vram_peak_mib.p50",
}


def result_of(tar: Path, worker_id: str, device_name: str) -> WorkerResult:
    """Read a packed result folder; `device_name` is what the worker registered as, empty where it has not yet.

    Blocking: it is unpacked and summarised."""
    with tempfile.TemporaryDirectory(prefix="prony-sark-") as scratch:
        folder = Path(scratch, "folder")
        unpack(tar, folder)
        contents = read_nouns(folder)
        summary = summary_of(folder)
        gpu_percent = busiest_gpu_percent(read_frame(folder, TELEMETRY))
    job, result = contents.job, contents.result
    is_complete = result.state is ResultState.COMPLETE and result.failure is None
    device = worker_device(contents.environment.device).model_dump(exclude={"udid"}, by_alias=False)
    device["device_name"] = device_name or device["device_name"]
    head = {
        "job_id": job.id,
        "campaign_id": job.experiment_id,
        "worker_id": worker_id,
        "compute_units": word_of(job.work(ModelWorkload).engine, job.work(ModelWorkload).unit),
    }
    if not is_complete:
        return WorkerResult(**head, **device, status="Failed", remark=_why(result), file_name="", file_size=0)
    return WorkerResult(
        **head,
        **device,
        status="Complete",
        remark=_doubts(summary),
        file_name=_file_name(job),
        file_size=result.model.size_bytes if result.model else None,
        load_ms_first=next(iter(summary.runs.get("load_ms.p50", ())), None),
        average_load_cpu_percent=_cpu_percent(result, "load"),
        average_inference_cpu_percent=_cpu_percent(result, "measure"),
        average_inference_gpu_percent=gpu_percent,
        **_figures(summary),
    )


def report_unstarted(job_id: str, campaign_id: str | None, worker_id: str, remark: str) -> WorkerResult:
    """Report a job that cannot even be begun here."""
    return WorkerResult(
        job_id=job_id, campaign_id=campaign_id, worker_id=worker_id, status="Failed", remark=remark,
        file_name="", file_size=0,
    )  # fmt: skip


def _figures(summary: Summary) -> dict[str, float]:
    known = {ours: summary.estimates[name].value for ours, name in _FIGURES.items() if name in summary.estimates}
    return {ours: value for ours, value in known.items() if value >= 0}


def _file_name(job: Job) -> str:
    return job.work(ModelWorkload).model.partition("?")[0].rstrip("/").rpartition("/")[2]


def _cpu_percent(result: Result, phase: Literal["load", "measure"]) -> float | None:
    """Return the CPU time by the wall time of a phase, the mean over the runs; 200 is two whole cores."""
    spans = [one.phases[phase] for one in result.repetitions if one.state == "ok" and phase in one.phases]
    shares = [100 * span.cpu_ns / (span.end_ns - span.begin_ns) for span in spans if span.end_ns > span.begin_ns]
    return fmean(shares) if shares else None


def busiest_gpu_percent(telemetry: pl.DataFrame) -> float | None:
    """Return how busy the busiest GPU was, in the mean over what was read beside the runs; None without a GPU."""
    import polars as pl

    gpus = telemetry.filter(pl.col("counter").str.contains(r"^gpu[0-9]+_busy$"))
    means = gpus.group_by("counter").agg(pl.col("value").mean())["value"]
    return 100 * float(max(means)) if len(means) else None


def _why(result: Result) -> str:
    failure = result.failure
    if failure is None:
        return f"the result is {result.state.value}"
    return _join((failure.message, failure.hint))


def _doubts(summary: Summary) -> str | None:
    """Say why a number may not be quoted; SARK has no verdict, and a remark does no harm."""
    verdict = summary.verdict
    if verdict.grade is Grade.VALID:
        return None
    reasons = (reason.text for reason in verdict.reasons if reason.grade is not Grade.VALID)
    return _join((f"{verdict.grade.value}:", *reasons), " ")


def _join(parts: Iterable[str], between: str = "; ") -> str:
    return between.join(filter(None, parts))
