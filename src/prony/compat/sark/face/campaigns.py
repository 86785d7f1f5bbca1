"""Plan a campaign as an experiment with its jobs and lots; nothing is stored yet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from prony.app.fleet.read_recipe import MOST_JOBS
from prony.app.fleet.submission import SubmissionPlan
from prony.compat.sark.face.settings import WHO
from prony.compat.sark.nouns import COMPUTE_UNITS, DEFAULT_RUNS, engine_units, measure_of
from prony.errors import InputError
from prony.kinds.model.schema import ModelWorkload
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.place import Demand
from prony.model.queue import Lot
from prony.model.recipe import Limits, Matrix, Recipe
from prony.model.workload import Scalar
from prony.recipe import dump

# What only Dumont workers offer, and only jobs of campaigns want: neither meets an agent's or a recipe's.
KIND = "sark"
_DEFAULT_UNIT = "CPU (ONNX)"
_MOST_RUNS = 1_000_000
_LONGEST_S = 7 * 86400
_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class AskedJob:
    word: str
    runs: int
    worker_id: str | None
    timeout_s: float

    @property
    def settings(self) -> dict[str, Scalar]:
        engine, units = engine_units(self.word) or ("", ("",))
        return {"workload.engine": engine, "workload.unit": units[0], "measure.runs": self.runs}


@dataclass(frozen=True)
class Campaign:
    model_url: str
    jobs: tuple[AskedJob, ...]


def campaign_of(body: Mapping[str, Any], *, job_s: float) -> Campaign:
    """Check what was asked for; the words of a refusal are SARK's where SARK refuses."""
    url, jobs = body.get("model_url"), body.get("jobs")
    if not url or not jobs:
        raise InputError("Missing model_url or jobs")
    if not isinstance(jobs, list) or not all(isinstance(one, dict) for one in jobs):
        raise InputError("Invalid jobs: a list of objects is expected")
    if len(jobs) > MOST_JOBS:
        raise InputError(f"Invalid jobs: {len(jobs)} are more than the {MOST_JOBS} of one campaign")
    return Campaign(_url(url), tuple(_job(number, one, job_s) for number, one in enumerate(jobs)))


def _url(url: object) -> str:
    """Refuse what is no download: a worker takes any path for its own file, and deletes it when it has run it."""
    if isinstance(url, str) and len(url) <= 2000 and url.isprintable():
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme in ("http", "https") and parts.hostname:
            return url
    raise InputError(f"Invalid model_url: {str(url)[:200]!r} is no http or https URL")


def _job(number: int, asked: Mapping[str, Any], job_s: float) -> AskedJob:
    word, worker_id = asked.get("compute_unit") or _DEFAULT_UNIT, asked.get("worker_id") or None
    if not isinstance(word, str) or word not in COMPUTE_UNITS:
        allowed = ", ".join(COMPUTE_UNITS)
        raise InputError(f'Invalid compute_unit in job {number}: "{str(word)[:100]}". Allowed values: {allowed}')
    if worker_id is not None and not (isinstance(worker_id, str) and _WORKER.fullmatch(worker_id)):
        raise InputError(f"Invalid worker_id in job {number}: {str(worker_id)[:100]!r}")
    runs = asked.get("num_inference_runs", DEFAULT_RUNS)
    if type(runs) is not int or not 1 <= runs <= _MOST_RUNS:
        raise InputError(f"Invalid num_inference_runs in job {number}: {str(runs)[:100]!r}; use a number from 1 on")
    timeout_s = asked.get("timeout_seconds", job_s)
    if type(timeout_s) not in (int, float) or not 0 < timeout_s <= _LONGEST_S:
        raise InputError(f"Invalid timeout_seconds in job {number}: {str(timeout_s)[:100]!r}; at most a week")
    return AskedJob(word, runs, worker_id, float(timeout_s))


def plan_campaign(campaign: Campaign, identity: str, *, now: datetime) -> SubmissionPlan:
    """Lay out the experiment; its recipe, run again, measures the same combinations by Prony's own rules."""
    recipe = _recipe(campaign)
    jobs = tuple(_planned_job(campaign, recipe, identity, number) for number in range(len(campaign.jobs)))
    known: dict[tuple[str, str | None], Lot] = {}
    lots: dict[str, Lot] = {}
    for job, asked in zip(jobs, campaign.jobs, strict=True):
        key = (asked.word, asked.worker_id)
        if key not in known:
            known[key] = Lot(
                id=f"{identity}.{len(known)}",
                experiment_id=identity,
                demand=Demand(kind=KIND, engine=asked.word if asked.worker_id is None else None),
                agent_id=asked.worker_id,
                created_at=now,
            )
        lots[job.id] = known[key]
    experiment = Experiment(
        id=identity, name=recipe.name, recipe=recipe, recipe_text=dump(recipe), state=ExperimentState.PENDING,
        created_at=now, job_count=len(jobs), submitted_by=WHO.name,
    )  # fmt: skip
    return SubmissionPlan(experiment, jobs, lots)


def _recipe(campaign: Campaign) -> Recipe:
    first = campaign.jobs[0]
    axes = _axes(campaign.jobs)
    asked = {tuple(one.settings[path] for path in axes) for one in campaign.jobs}
    exclude = [dict(zip(axes, values, strict=True)) for values in product(*axes.values()) if values not in asked]
    settings = first.settings
    return Recipe(
        name=_name(campaign.model_url),
        description="a SARK campaign",
        workload=ModelWorkload(
            kind="model", model=campaign.model_url,
            engine=str(settings["workload.engine"]), unit=str(settings["workload.unit"]),
        ),
        matrix=Matrix(axes=axes, exclude=exclude),
        measure=measure_of(first.runs),
        limits=_limits(first),
    )  # fmt: skip


def _axes(jobs: Sequence[AskedJob]) -> dict[str, list[Scalar]]:
    """Return what differs between jobs, each with its values in the order of their first use."""
    paths = jobs[0].settings
    found = {path: list(dict.fromkeys(one.settings[path] for one in jobs)) for path in paths}
    return {path: values for path, values in found.items() if len(values) > 1}


def _planned_job(campaign: Campaign, recipe: Recipe, identity: str, number: int) -> Job:
    asked = campaign.jobs[number]
    settings = asked.settings
    own = {"engine": settings["workload.engine"], "unit": settings["workload.unit"]}
    return Job(
        id=f"{identity}-job-{number}",
        experiment_id=identity,
        name=recipe.name,
        cell={path: settings[path] for path in recipe.matrix.axes},
        workload=recipe.work(ModelWorkload).model_copy(update=own),
        measure=measure_of(asked.runs),
        limits=_limits(asked),
    )


def _limits(asked: AskedJob) -> Limits:
    return Limits.model_validate({"timeout": f"{round(asked.timeout_s * 10**9)}ns"})


def _name(url: str) -> str:
    """Return the model's file name as a recipe may be called."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePosixPath(urlsplit(url).path).stem)[:100]
    return stem if re.fullmatch(r"[A-Za-z0-9].*", stem) else "campaign"
