"""A submission in, an experiment with its jobs and their lots out; nothing stored yet."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from prony.app.api import check_names, new_id
from prony.dispatch.matching import demand_of, lacks
from prony.errors import InputError
from prony.model.agent import Fact
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.place import Demand
from prony.model.queue import Lot, Submission
from prony.model.recipe import Recipe
from prony.recipe import Loaded, loads
from prony.recipe.formats import format_of

MOST_JOBS = 20_000
# What an agent offers, by its id: all that `devices: each` needs to know.
Offers = Mapping[str, Mapping[str, Fact]]


@dataclass(frozen=True)
class Plan:
    experiment: Experiment
    jobs: tuple[Job, ...]
    lots: dict[str, Lot]  # by job

    @property
    def tries(self) -> int:
        return self.experiment.recipe.place.attempts


def digest(submission: Submission) -> str:
    return hashlib.sha256(submission.model_dump_json().encode()).hexdigest()


def plan(submission: Submission, offers: Offers, *, now: datetime, who: str, experiment_id: str | None = None) -> Plan:
    """Read the recipe and lay out its jobs; `experiment_id` is given where an experiment gets another recipe."""
    loaded = _loaded(submission)
    priority = loaded.recipe.place.priority if submission.priority is None else submission.priority
    identity = experiment_id or new_id(time.time(), chance=6)
    recipe = loaded.recipe
    cells = loaded.jobs(identity)
    _check_size(len(cells))
    check_names(cells)
    jobs, lots = _placed(cells, recipe, offers, priority=priority, now=now)
    _check_size(len(jobs))
    experiment = Experiment(
        id=identity,
        name=recipe.name,
        recipe=recipe,
        recipe_text=loaded.text,
        state=ExperimentState.PENDING,
        created_at=now,
        job_count=len(jobs),
        submitted_by=who,
    )
    return Plan(experiment, jobs, lots)


def demands(submission: Submission) -> list[tuple[Demand, int]]:
    """Return what the recipe's jobs want, each with how many want it."""
    loaded = _loaded(submission)
    cells = loaded.jobs("compatibility")
    _check_size(len(cells))
    check_names(cells)
    found: dict[str, tuple[Demand, int]] = {}
    for job in cells:
        demand = demand_of(job, loaded.recipe.place)
        found[demand.id] = (demand, found.get(demand.id, (demand, 0))[1] + 1)
    return list(found.values())


def _loaded(submission: Submission) -> Loaded:
    return loads(submission.text, format_of(Path(submission.name)), submission.name, submission.overrides)


def _placed(
    cells: Sequence[Job], recipe: Recipe, offers: Offers, *, priority: int, now: datetime
) -> tuple[tuple[Job, ...], dict[str, Lot]]:
    jobs: list[Job] = []
    lots: dict[str, Lot] = {}
    known: dict[tuple[str, str | None], Lot] = {}
    for cell in cells:
        demand = demand_of(cell, recipe.place)
        for number, agent_id in enumerate(_places(demand, recipe, offers)):
            key = (demand.id, agent_id)
            if key not in known:
                name = f"{cell.experiment_id}.{len(known)}"
                known[key] = Lot(
                    id=name,
                    experiment_id=cell.experiment_id,
                    demand=demand,
                    agent_id=agent_id,
                    priority=priority,
                    created_at=now,
                )
            job = cell if number == 0 else cell.model_copy(update={"id": f"{cell.id}-{number}"})
            jobs.append(job)
            lots[job.id] = known[key]
    return tuple(jobs), lots


def _places(demand: Demand, recipe: Recipe, offers: Offers) -> list[str | None]:
    """Return the agents that a job is for: None is whoever fits. With `each`, nobody yet means the first who comes."""
    if recipe.place.devices == "any":
        return [None]
    return [agent_id for agent_id, facts in offers.items() if not lacks(demand, facts)] or [None]


def _check_size(count: int) -> None:
    if count > MOST_JOBS:
        raise InputError(
            f"this recipe makes {count} jobs, more than the {MOST_JOBS} that a server takes at once",
            hint="submit it in parts: leave values out of the matrix, or exclude some",
            code="too_many_jobs",
        )


def for_again(experiment: Experiment) -> Submission:
    """Return the submission that makes the same experiment again."""
    from prony.recipe import dump

    return Submission(text=dump(experiment.recipe), name=f"{experiment.id}.yaml")
