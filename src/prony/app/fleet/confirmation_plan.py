"""A change in a history in, the runs that would decide it out: on which agent, of what, how many; or why none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from prony.analyse.history.confirmation import MORE, PAIRS, last_good
from prony.app.api import new_id
from prony.app.fleet.submission import Plan
from prony.dispatch.matching import demand_of
from prony.model.estimate import Grade
from prony.model.experiment import Experiment, ExperimentState
from prony.model.history import Change, Point
from prony.model.job import Job
from prony.model.queue import Lot
from prony.model.recipe import Duet, Matrix, Recipe
from prony.model.workload import Scalar
from prony.recipe import dump
from prony.recipe.expand import expand
from prony.store import confirmations, queue, result_rows, series
from prony.store.confirmations import Batch

# Who made them, and after everybody else's.
WHO, PRIORITY = "prony", -100
# So many results of the old level are enough to hold runs of today against; fewer than the first say nothing.
_LEAST_BEFORE, _MOST_BEFORE = PAIRS, PAIRS + MORE
_VERSION = "workload.engine_version"
Side = dict[str, Scalar]


@dataclass(frozen=True)
class Case:
    """`before`: the results of the old level from the same agent; `sides`: what to set to have the old version, and
    the new one, where that is known."""

    change: Change
    job: Job
    recipe: Recipe
    agent_id: str
    before: tuple[float, ...]
    sides: tuple[Side, Side] | None


@dataclass(frozen=True)
class Refusal:
    """Why nothing is run; `waits_for` is the agent that may come back, where that is all that is missing."""

    reason: str
    waits_for: str | None = None


@dataclass(frozen=True)
class Trial:
    """One batch that is to be run; `count` pairs or runs."""

    way: str
    count: int

    @property
    def runs(self) -> int:
        return 2 * self.count if self.way == "duet" else self.count

    def text(self, case: Case) -> str:
        if self.way == "duet" and case.sides is not None:
            old, new = (side[_VERSION] for side in case.sides)
            return f"{self.count} pairs of engine {old} and {new} in turn"
        return f"the same job {self.count} time{'' if self.count == 1 else 's'} more"


def study(connection: Connection, change: Change, is_there: Callable[[str], bool | None]) -> Case | Refusal:
    """Return what can be run for a change, or why nothing can.

    `is_there`: may an agent be given work? None where it is known no more.
    """
    points = [one for one in series.points(connection, change.series_id) if _counts(one, change.metric)]
    position = next((place for place, one in enumerate(points) if one.job_id == change.job_id), 0)
    if position == 0:
        return Refusal("the result of the change, or those before it, are gone")
    earlier = points[max(0, position - change.before.runs) : position]
    agents = confirmations.agents_of(connection, [one.job_id for one in (*earlier, points[position])])
    agent_id = agents.get(change.job_id)
    if agent_id is None:
        return Refusal("no agent of this server brought the result")
    if not (standing := is_there(agent_id)):
        told = f"agent {agent_id}, which brought the result, is {'gone' if standing is None else 'not there'}"
        return Refusal(told, None if standing is None else agent_id)
    job = Job.read_json(queue.document(connection, change.job_id))
    if job.agents > 1:
        return Refusal("several agents ran it together")
    old = points[last_good(position, position - len(earlier), is_alone=is_alone(change))]
    before = [one.values[change.metric] for one in earlier if agents.get(one.job_id) == agent_id]
    recipe = result_rows.experiment(connection, change.experiment_id).recipe
    return Case(change, job, recipe, agent_id, tuple(before[-_MOST_BEFORE:]), _sides(job, old, points[position]))


def is_alone(change: Change) -> bool:
    """Is it one result by itself that is suspicious?"""
    return change.p is None and change.after.runs == 1


def _counts(point: Point, metric: str) -> bool:
    return point.grade is not Grade.VOID and point.values.get(metric, 0.0) > 0


def _sides(job: Job, old: Point, new: Point) -> tuple[Side, Side] | None:
    """Return the engine's versions, where they differ; all else that a history leaves open cannot be set back."""
    if _VERSION.removeprefix("workload.") not in type(job.workload).model_fields:
        return None
    names, versions = zip(*(_engine(one) for one in (old, new)), strict=True)
    if names[0] != names[1] or versions[0] == versions[1] or not all(versions):
        return None
    return {_VERSION: versions[0]}, {_VERSION: versions[1]}


def _engine(point: Point) -> tuple[str, str]:
    """Return the engine's name and its version as a recipe asks for it, without what a build adds."""
    name, _, version = point.facts.get("engine", "").partition(" ")
    return name, version.partition("-")[0].partition("+")[0]


def following(case: Case, batches: Sequence[Batch]) -> Trial | Refusal:
    """Return the batch that comes after these, the first by default; or why there is none."""
    can_repeat = len(case.before) >= _LEAST_BEFORE
    if not batches and can_repeat and is_alone(case.change):
        return Trial("once", 1)  # a spike ends here, and has cost one run
    has_failed = any(one.way == "duet" and one.outcome == "failed" for one in batches)
    way = "duet" if case.sides is not None and not has_failed else "again"
    if way == "again" and not can_repeat:
        return Refusal(
            f"nothing can be set back to how it was, and only {len(case.before)} results before it are of this agent "
            f"({_LEAST_BEFORE} are needed)"
        )
    is_second = any(one.way == way and one.outcome == "open" for one in batches)
    return Trial(way, MORE if is_second else PAIRS)


def plan_batch(case: Case, trial: Trial, *, now: datetime) -> Plan:
    """Return the experiment that runs a batch on the agent of the change, as one lot, in order."""
    identity = new_id(time.time(), chance=6)
    recipe = _recipe(case, trial)
    if trial.way == "duet":
        jobs = expand(recipe, identity, apart=True)
    else:
        numbers = range(1, trial.count + 1)
        jobs = [case.job.model_copy(update={"id": f"{identity}-{number:03d}"}) for number in numbers]
    own = {"experiment_id": identity, "confirms": case.change.id}
    jobs = [job.model_copy(update=own) for job in jobs]
    demand = demand_of(jobs[0], recipe.place)
    lot = Lot(id=f"{identity}.0", experiment_id=identity, priority=PRIORITY, created_at=now, demand=demand,
              agent_id=case.agent_id)  # fmt: skip
    experiment = Experiment(
        id=identity, name=recipe.name, recipe=recipe, recipe_text=dump(recipe), state=ExperimentState.PENDING,
        created_at=now, job_count=len(jobs), submitted_by=WHO, confirms=case.change.id,
    )  # fmt: skip
    return Plan(experiment, tuple(jobs), {job.id: lot for job in jobs})


def _recipe(case: Case, trial: Trial) -> Recipe:
    """Return the recipe of the one job: without its matrix, and without what would tell or time other things."""
    job = case.job
    duet = None
    if trial.way == "duet" and case.sides is not None:
        duet = Duet(a=case.sides[0], b=case.sides[1], pairs=trial.count)
    own = {"workload": job.workload, "measure": job.measure, "load": job.load, "limits": job.limits}
    bare = {"matrix": Matrix(), "duet": duet, "gates": (), "schedule": None, "alarms": ()}
    return case.recipe.model_copy(update=own | bare)
