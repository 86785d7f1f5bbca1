"""Plan the experiment that a submitted recipe asks for, and store it with its jobs."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TypeVar

from prony.app.check_jobs import new_id
from prony.app.fleet.read_recipe import ReadOrder, ReadRecipe, check_job_count
from prony.app.fleet.state import FleetState
from prony.app.pin_images import pin_images
from prony.dispatch.matching import demand_of, lacks
from prony.errors import CapacityError, PronyError
from prony.model.agent import Fact
from prony.model.experiment import Experiment, ExperimentState
from prony.model.git import Git
from prony.model.job import Job
from prony.model.place import Demand
from prony.model.queue import ExperimentView, JobState, Lot, Submission
from prony.model.recipe import Recipe
from prony.model.states import IDLE_ONLY
from prony.recipe import LoadedRecipe
from prony.store import experiments, queue
from prony.store.store import Store
from prony.store.writer import Transaction


@dataclass(frozen=True)
class Offer:
    """What an agent offers: all that `devices: each` needs to know."""

    device_key: str
    facts: Mapping[str, Fact]


# By agent; asked for only where each device is meant, because there may be thousands.
Offers = Callable[[], Mapping[str, Offer]]


@dataclass(frozen=True)
class SubmissionPlan:
    experiment: Experiment
    jobs: tuple[Job, ...]
    lots: dict[str, Lot]  # by job

    @property
    def tries(self) -> int:
        return self.experiment.recipe.place.attempts

    @cached_property
    def rows(self) -> queue.NewRows:
        """What is stored of its jobs and lots."""
        return queue.make_rows(self.jobs, self.lots, tries=self.tries, now=self.experiment.created_at)

    def prepare(self) -> queue.NewRows:
        """Make the rows, which takes long of a large plan: in a thread, and before the transaction that needs them."""
        return self.rows

    def of_schedule(self, schedule_id: str | None) -> SubmissionPlan:
        if schedule_id is None:
            return self
        return replace(self, experiment=self.experiment.model_copy(update={"schedule_id": schedule_id}))

    def at_commit(self, git: Git | None) -> SubmissionPlan:
        """Return it with the repository that its recipe comes from in the experiment and in every job."""
        if git is None:
            return self
        jobs = tuple(job.model_copy(update={"git": git}) for job in self.jobs)
        return replace(self, experiment=self.experiment.model_copy(update={"git": git}), jobs=jobs)

    def traced_as(self, traceparent: str) -> SubmissionPlan:
        """Return it with the trace that it belongs to in every job."""
        if not traceparent:
            return self
        return replace(self, jobs=tuple(job.model_copy(update={"traceparent": traceparent}) for job in self.jobs))

    def noted_as(self, earlier: Experiment) -> SubmissionPlan:
        """Return it with what was noted when the recipe was first read: what is run again is the recipe alone."""
        noted = {"dialect": earlier.dialect, "notes": earlier.notes}
        return replace(self, experiment=self.experiment.model_copy(update=noted))

    def with_pinned_images(self, store: Store) -> SubmissionPlan:
        """Return it with the images that the earlier run had, where this is a rerun."""
        experiment, jobs = pin_images(store, self.experiment, self.jobs)
        return replace(self, experiment=experiment, jobs=tuple(jobs))

    @property
    def view(self) -> ExperimentView:
        """What is shown of it when it is stored, and nothing of it lent yet."""
        return ExperimentView(
            experiment=self.experiment,
            counts={JobState.WAITING: len(self.jobs)},
            priority=max(lot.priority for lot in self.lots.values()),
            submitted_by=self.experiment.submitted_by,
        )


def digest_submission(submission: Submission, rerun_of: str | None) -> str:
    text = submission.model_dump_json() + (f" again {rerun_of}" if rerun_of else "")
    return hashlib.sha256(text.encode()).hexdigest()


def order_for(submission: Submission, replaced: Experiment | None = None) -> ReadOrder:
    """Return the order to read a recipe for a new experiment, or for one that gets another recipe."""
    return ReadOrder(submission, replaced.id if replaced else new_id(time.time(), chance=6), apart=True)


def plan_experiment(
    read: ReadRecipe,
    offers: Offers,
    *,
    now: datetime,
    who: str,
    replaced: Experiment | None = None,
    rerun_of: str | None = None,
) -> SubmissionPlan:
    """Lay out the jobs of a recipe that was read; `replaced` is an experiment that gets another recipe."""
    loaded, cells, submission, identity = read.loaded, read.cells, read.order.submission, read.order.identity
    priority = loaded.recipe.place.priority if submission.priority is None else submission.priority
    recipe = loaded.recipe
    # Lots of another recipe are other lots: who has the old ones in mind must not take them for these.
    prefix = f"{identity}.{new_id(time.time(), chance=2)}" if replaced else identity
    kind = partial(Lot, experiment_id=identity, priority=priority, created_at=now)
    jobs, lots = _assign_lots(cells, recipe, offers, lambda number, **rest: kind(id=f"{prefix}.{number}", **rest))
    check_job_count(len(jobs))
    experiment = Experiment(
        id=identity,
        name=recipe.name,
        recipe=recipe,
        recipe_text=loaded.text,
        dialect=loaded.dialect,
        notes=loaded.notes,
        state=ExperimentState.PENDING,
        created_at=now,
        job_count=len(jobs),
        submitted_by=who,
        rerun_of=replaced.rerun_of if replaced else rerun_of,
    )
    return SubmissionPlan(experiment, jobs, lots).at_commit(submission.git)


def demands(loaded: LoadedRecipe, cells: Sequence[Job]) -> list[tuple[Demand, int]]:
    """Return what the recipe's jobs want, each with how many want it."""
    found: dict[str, tuple[Demand, int]] = {}
    for job in cells:
        demand = demand_of(job, loaded.recipe.place)
        found[demand.id] = (demand, found.get(demand.id, (demand, 0))[1] + 1)
    return list(found.values())


def _assign_lots(
    cells: Sequence[Job], recipe: Recipe, offers: Offers, make: Callable[..., Lot]
) -> tuple[tuple[Job, ...], dict[str, Lot]]:
    if recipe.duet is not None:
        return _on_one(cells, recipe, offers, make)
    jobs: list[Job] = []
    lots: dict[str, Lot] = {}
    known: dict[tuple[str, str | None], Lot] = {}
    places: dict[str, list[str | None]] = {}  # by demand
    offered = offers() if recipe.place.devices == "each" else {}
    for cell in cells:
        demand = demand_of(cell, recipe.place)
        if demand.id not in places:
            places[demand.id] = _places(demand, recipe, offered)
        check_job_count(len(jobs) + len(places[demand.id]))
        for number, agent_id in enumerate(places[demand.id]):
            key = (demand.id, agent_id)
            if key not in known:
                known[key] = make(len(known), demand=demand, agent_id=agent_id)
            job = cell if number == 0 else cell.model_copy(update={"id": f"{cell.id}-{number}"})
            jobs.append(job)
            lots[job.id] = known[key]
    return tuple(jobs), lots


def _on_one(
    cells: Sequence[Job], recipe: Recipe, offers: Offers, make: Callable[..., Lot]
) -> tuple[tuple[Job, ...], dict[str, Lot]]:
    """Give a duet to one agent that can run both sides, as one lot: a lot's jobs are handed out in their order."""
    wanted = {demand.id: demand for demand in (demand_of(cell, recipe.place) for cell in cells)}
    fitting = [
        agent_id
        for agent_id, offer in sorted(offers().items())
        if not any(lacks(demand, offer.facts) for demand in wanted.values())
    ]
    if not fitting:
        raise CapacityError(
            "no agent that is known here can run both sides of this duet",
            hint="both sides must fit one device; prony agents shows what each offers",
            code="no_common_agent",
        )
    lot = make(0, demand=next(iter(wanted.values())), agent_id=fitting[0])
    return tuple(cells), {cell.id: lot for cell in cells}


def _places(demand: Demand, recipe: Recipe, offers: Mapping[str, Offer]) -> list[str | None]:
    """Return the agents that a job is for, one for each device; None is whoever fits.

    With `each`, nobody yet means the first who comes.
    """
    if recipe.place.devices == "any":
        return [None]
    devices: dict[str, str] = {}
    for agent_id, offer in offers.items():
        if offer.device_key not in devices and not lacks(demand, offer.facts):
            devices[offer.device_key] = agent_id
    return [*devices.values()] or [None]


def resubmission_of(experiment: Experiment) -> Submission:
    """Return the submission that makes the same experiment again."""
    from prony.recipe import dump

    return Submission(text=dump(experiment.recipe), name=f"{experiment.id}.yaml", git=experiment.git)


T = TypeVar("T")


def list_offers(state: FleetState) -> Offers:
    """Return who could be given work; of several agents of a device, one that is known longer comes first."""
    agents = tuple(state.agents.values())
    return lambda: {
        one.id: Offer(one.device_key, one.capabilities.facts) for one in agents if one.state not in IDLE_ONLY
    }


async def write_plan(state: FleetState, plan: SubmissionPlan | PronyError | None, writing: Awaitable[T]) -> T:
    """Write with the plan's lots in mind, so that whoever waits is offered them at once."""
    with state.expect_lots(plan.lots.values() if isinstance(plan, SubmissionPlan) else ()):
        return await writing


def store_plan(transaction: Transaction, made: SubmissionPlan) -> None:
    """Store the experiment and let its jobs wait."""
    experiments.add_submitted(transaction.connection, made.experiment)
    transaction.publish("job", f"{made.experiment.id}/")
    enqueue(transaction, made)


def enqueue(transaction: Transaction, made: SubmissionPlan) -> None:
    """Let its jobs wait; the experiment is stored."""
    queue.add(transaction.connection, made.rows)
    for lot_id, count in Counter(lot.id for lot in made.lots.values()).items():
        transaction.publish("lot", lot_id, count)
