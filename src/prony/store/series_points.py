"""Place a result in its history: the series it belongs to and its point there.

A series is one benchmark with its parameters on one kind of machine, on the default branch; each other branch has one
of its own. Versions are not part of that: a new engine, kernel or commit is a fact of a point, so that what it changed
is seen.
"""

from __future__ import annotations

import hashlib
import json
import math
from datetime import datetime
from functools import reduce
from typing import Any

from prony.model.estimate import Summary, headline_of, metric_in
from prony.model.git import Git, branch_apart
from prony.model.job import Job
from prony.model.load import Load
from prony.model.metric import key_of
from prony.model.recipe import Measure
from prony.model.result import ResultState
from prony.model.workload import Workload
from prony.store.folder import FolderContents

# Of every metric the middle and the tail; all else is in the summary.
_STATISTICS = ("", "p50", "p99")
_VERSIONS = {"checksum", "engine_version", "directory"}
# How often a service is started is no other benchmark, as how a model's process is made is none.
_NOT_IN_NAME = _VERSIONS | {"restart"}
Values = dict[str, Any]


def place_in_history(contents: FolderContents, summary: Summary) -> tuple[Values, Values] | None:
    """Return the rows of a result's series and of its point; None of one without numbers, of a side of a duet and of
    one that confirms a change.

    Their documents are the nouns of `model.history`, written here without them: a run of one job need not load these.
    """
    job, result, device = contents.job, contents.result, contents.environment.device
    metric = headline_of(summary, job.workload.kind)
    is_apart = job.side is not None or job.confirms is not None
    if metric is None or is_apart or result.state is ResultState.FAILED:
        return None
    about, git = metric_in(summary, metric), contents.environment.git
    engine = result.effective
    timed = (None, None) if engine is None else (engine.outputs_at, engine.gradients)
    trunk = fingerprint(job, device.hardware_id, device.software.os, *timed)
    series_id = series_of_branch(trunk, git, branch_apart(git))
    series = {
        "id": series_id, "name": job.name[:128], "title": job.title[:500], "machine": device.name[:128],
        "hardware_id": device.hardware_id, "metric": metric, "unit": about.unit, "better": about.better,
        "branch": branch_apart(git),
    }  # fmt: skip
    values = {
        key: estimate.value
        for key, estimate in sorted(summary.estimates.items())
        if (key_of(key).statistic in _STATISTICS or key in job.watch) and math.isfinite(estimate.value)
    }
    point = {
        "series_id": series_id, "job_id": job.id, "experiment_id": job.experiment_id,
        "measured_at": result.started_at.isoformat(), "grade": summary.verdict.grade.value, "values": values,
        "facts": _facts(contents), "git": None if git is None else git.model_dump(mode="json"),
        "base_series_id": base_series(trunk, git),
        "metrics": {name: one.model_dump(mode="json") for name, one in summary.metrics.items()},
        "canary": summary.canary, "watch": job.watch,
    }  # fmt: skip
    return _series_row(series), _point_row(point, result.started_at)


def _series_row(series: dict[str, str]) -> Values:
    shown = {"id": series["id"], "name": series["name"].replace("\0", "\ufffd"), "hardware_id": series["hardware_id"]}
    branch = series["branch"].replace("\0", "\ufffd") or None
    return shown | {"branch": branch} | {"state": "learning", "document": json.dumps(series)}


def _point_row(point: dict[str, Any], at: datetime) -> Values:
    """A new point waits to be judged."""
    own = {"job_id": point["job_id"], "series_id": point["series_id"], "measured_at": at}
    return own | {"judged": False, "document": json.dumps(point)}


# What decides an exit code and changes no number.
_NO_MATTER = {"errors"}
# Keys that came after series were first named: who leaves them out stays in a series.
_LATER_KEYS = ("cache", "same_text")
_LATER_MEASURE_KEYS = ("energy_window",)
# How often a load was repeated by default when series were first named: who leaves it out stays in a series.
_FIRST_REPEATS = 3


def _load_settings(load: Load) -> dict[str, Any]:
    usual = Load()
    left_out = {key for key in _LATER_KEYS if getattr(load, key) == getattr(usual, key)}
    found = load.model_dump(mode="json", exclude=_NO_MATTER | left_out)
    if load.clients.on is None:  # a later key too
        del found["clients"]["on"]
    return found | {"repeats": _FIRST_REPEATS} if load.repeats == usual.repeats else found


def _measure_settings(measure: Measure) -> dict[str, Any]:
    """Return what decides a run. How its process is made, and whether quick inferences go on, is no other benchmark:
    it was a copy when series were named, of 100 inferences."""
    later = {key for key in _LATER_MEASURE_KEYS if getattr(measure, key) == getattr(Measure(), key)}
    return measure.model_dump(mode="json", exclude=later) | {"isolation": "fork", "runs": measure.least_runs}


def _workload_settings(workload: Workload) -> dict[str, Any]:
    found = workload.model_dump(mode="json", exclude=_NOT_IN_NAME)
    for path, usual in workload.later_keys.items():
        *parents, key = path.split(".")
        section = reduce(lambda part, name: part.get(name, {}), parents, found)
        if section.get(key) == usual:
            del section[key]
    return found


def fingerprint(
    job: Job, hardware_id: str, system: str, outputs_at: str | None = None, gradients: str | None = None
) -> str:
    """Return the name of the default branch's series: what must be alike for two results to be of one history, and
    nothing else.

    `outputs_at` is where a device left its outputs: times that count a copy to the host are of another history. So are
    those in which an engine recorded `gradients` that it does not record now.
    """
    workload = _workload_settings(job.workload)
    told: dict[str, Any] = {
        "name": job.name, "cell": job.cell, "workload": workload, "measure": _measure_settings(job.measure),
        "load": _load_settings(job.load), "hardware": hardware_id, "os": system,
    }  # fmt: skip
    told |= {} if outputs_at is None else {"outputs_at": outputs_at}
    told |= {} if gradients is None else {"gradients": gradients}
    return "s" + hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:15]


def series_of_branch(trunk: str, git: Git | None, branch: str) -> str:
    """Return the name of the series of a branch, by that of the default branch, which an empty branch means."""
    if not branch:
        return trunk
    told = json.dumps([trunk, None if git is None else git.repository, branch])
    return "s" + hashlib.sha256(told.encode()).hexdigest()[:15]


def base_series(trunk: str, git: Git | None) -> str | None:
    """Return the name of the series that a branch is judged against; None where its results are of the default one."""
    if git is None or git.base is None:
        return None
    return series_of_branch(trunk, git, "" if git.base == git.default_branch else git.base)


def _facts(contents: FolderContents) -> dict[str, str]:
    """Return what may explain a change, as far as it is known."""
    software, result, git = contents.environment.device.software, contents.result, contents.environment.git
    engine, service = result.effective, result.service
    known = {
        "commit": None if git is None else git.commit + ("+changes" if git.dirty else ""),
        "prony": result.prony_version,
        "engine": None if engine is None else f"{engine.engine} {engine.engine_version}",
        "service": None if service is None else f"{service.name} {service.version}".strip(),
        "restart": None if service is None else service.restart,
        "model": None if result.model is None else result.model.sha256,
        "script": None if result.script is None else result.script.directory,
        "threads": None if engine is None or engine.threads is None else str(engine.threads),
        "precision": None if engine is None else engine.precision,
        "os version": software.os_version,
        "kernel": software.kernel,
        "libc": software.libc,
        "microcode": software.microcode,
        "GPU driver": software.gpu_driver,
        "python": software.python,
    }
    noted = contents.environment.checksums | ({} if service is None else service.settings)
    images = {name: value for name, value in noted.items() if name.startswith("image ")}
    settable = {} if service is None else {f"settings.{path}": value for path, value in service.settable.items()}
    return {key: value for key, value in (known | images | settable).items() if value}
