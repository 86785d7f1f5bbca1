"""Plan a campaign as an experiment with its jobs and lots; nothing is stored yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

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
_SHORTEST_S = 0.001
_LONGEST_S = 7 * 86400
# Nobody needs a token to ask for a campaign, so even the largest must cost little.
_MOST_JOBS = 5000
_MOST_KINDS = 100
_MOST_PLACES = 1000
_SPLIT = "make several campaigns of it"
_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class JobKind:
    """What is measured; where is not part of it."""

    word: str
    runs: int
    timeout_s: float

    @property
    def settings(self) -> dict[str, Scalar]:
        engine, units = engine_units(self.word) or ("", ("",))
        return {"workload.engine": engine, "workload.unit": units[0], "measure.runs": self.runs}

    @property
    def limits(self) -> Limits:
        return Limits.model_validate({"timeout": f"{round(self.timeout_s * 10**9)}ns"})


@dataclass(frozen=True)
class AskedJob:
    kind: JobKind
    worker_id: str | None

    @property
    def word(self) -> str:
        return self.kind.word


@dataclass(frozen=True)
class Campaign:
    model_url: str
    jobs: tuple[AskedJob, ...]

    @property
    def kinds(self) -> tuple[JobKind, ...]:
        """Return what differs between jobs, in the order of its first use."""
        return tuple(dict.fromkeys(one.kind for one in self.jobs))

    @property
    def places(self) -> tuple[tuple[str, str | None], ...]:
        """Return the compute units, each with a worker or for all, that jobs wait for."""
        return tuple(dict.fromkeys((one.word, one.worker_id) for one in self.jobs))


def campaign_of(body: Mapping[str, Any], *, job_s: float) -> Campaign:
    """Check what was asked for; the words of a refusal are SARK's where SARK refuses."""
    url, jobs = body.get("model_url"), body.get("jobs")
    if not url or not jobs:
        raise InputError("Missing model_url or jobs")
    if not isinstance(jobs, list) or not all(isinstance(one, dict) for one in jobs):
        raise InputError("Invalid jobs: a list of objects is expected")
    if len(jobs) > _MOST_JOBS:
        raise InputError(f"Invalid jobs: {len(jobs)} are more than the {_MOST_JOBS} of one campaign", hint=_SPLIT)
    campaign = Campaign(_url(url), tuple(_job(number, one, job_s) for number, one in enumerate(jobs)))
    _check_variety(campaign)
    return campaign


def _check_variety(campaign: Campaign) -> None:
    """Refuse what makes a long recipe, or lots that each worker is held against again and again."""
    kinds, places = len(campaign.kinds), len(campaign.places)
    if kinds > _MOST_KINDS:
        raise InputError(
            f"Invalid jobs: {kinds} combinations of compute_unit, num_inference_runs and timeout_seconds are more than "
            f"the {_MOST_KINDS} of one campaign",
            hint=_SPLIT,
        )
    if places > _MOST_PLACES:
        raise InputError(
            f"Invalid jobs: {places} combinations of compute_unit and worker_id are more than the {_MOST_PLACES} of "
            "one campaign",
            hint=_SPLIT,
        )


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
    if type(timeout_s) not in (int, float) or not _SHORTEST_S <= timeout_s <= _LONGEST_S:
        raise InputError(f"Invalid timeout_seconds in job {number}: {str(timeout_s)[:100]!r}; from 1 ms to a week")
    return AskedJob(JobKind(word, runs, float(timeout_s)), worker_id)


def plan_campaign(campaign: Campaign, identity: str, *, now: datetime) -> SubmissionPlan:
    """Lay out the experiment; its recipe, run again, measures the same combinations by Prony's own rules."""
    recipe = _recipe(campaign)
    # A job is costly to make and cheap to copy, and thousands of them differ in their ids alone.
    first = {kind: _first_job(recipe, kind, identity) for kind in campaign.kinds}
    jobs = tuple(
        first[asked.kind].model_copy(update={"id": f"{identity}-job-{number}"})
        for number, asked in enumerate(campaign.jobs)
    )
    known = {
        (word, worker_id): Lot(
            id=f"{identity}.{number}",
            experiment_id=identity,
            demand=Demand(kind=KIND, engine=word if worker_id is None else None),
            agent_id=worker_id,
            created_at=now,
        )
        for number, (word, worker_id) in enumerate(campaign.places)
    }
    lots = {job.id: known[asked.word, asked.worker_id] for job, asked in zip(jobs, campaign.jobs, strict=True)}
    experiment = Experiment(
        id=identity, name=recipe.name, recipe=recipe, recipe_text=dump(recipe), state=ExperimentState.PENDING,
        created_at=now, job_count=len(jobs), submitted_by=WHO.name,
    )  # fmt: skip
    return SubmissionPlan(experiment, jobs, lots)


def _recipe(campaign: Campaign) -> Recipe:
    first = campaign.jobs[0].kind
    asked = [kind.settings for kind in campaign.kinds]
    axes = _axes(asked)
    settings = first.settings
    return Recipe(
        name=_name(campaign.model_url),
        description="a SARK campaign",
        workload=ModelWorkload(
            kind="model", model=campaign.model_url,
            engine=str(settings["workload.engine"]), unit=str(settings["workload.unit"]),
        ),
        matrix=Matrix(axes=axes, exclude=list(_exclusions(axes, asked))),
        measure=measure_of(first.runs),
        limits=first.limits,
    )  # fmt: skip


def _axes(asked: Sequence[Mapping[str, Scalar]]) -> dict[str, list[Scalar]]:
    """Return what differs between jobs, each with its values in the order of their first use."""
    found = {path: list(dict.fromkeys(settings[path] for settings in asked)) for path in asked[0]}
    return {path: values for path, values in found.items() if len(values) > 1}


def _exclusions(
    axes: Mapping[str, Sequence[Scalar]], asked: Sequence[Mapping[str, Scalar]]
) -> Iterator[dict[str, Scalar]]:
    """Yield what leaves the combinations that were asked for; each names as few axes as will do, from the first on."""
    wanted = [tuple(settings[path] for path in axes) for settings in asked]
    for depth, values in enumerate(axes.values()):
        begins = dict.fromkeys(one[:depth] for one in wanted)
        longer = {one[: depth + 1] for one in wanted}
        for begin, value in product(begins, values):
            if (*begin, value) not in longer:
                yield dict(zip(axes, (*begin, value), strict=False))


def _first_job(recipe: Recipe, kind: JobKind, identity: str) -> Job:
    settings = kind.settings
    own = {"engine": settings["workload.engine"], "unit": settings["workload.unit"]}
    return Job(
        id=f"{identity}-job",
        experiment_id=identity,
        name=recipe.name,
        cell={path: settings[path] for path in recipe.matrix.axes},
        workload=recipe.work(ModelWorkload).model_copy(update=own),
        measure=measure_of(kind.runs),
        limits=kind.limits,
    )


def _name(url: str) -> str:
    """Return the model's file name as a recipe may be called."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePosixPath(urlsplit(url).path).stem)[:100]
    return stem if re.fullmatch(r"[A-Za-z0-9].*", stem) else "campaign"
