"""Say of a recipe, before it is submitted, what is wrong with it, who could run it, and how long that takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import median

from prony.app.draft_recipe import draft_duet, draft_recipe
from prony.app.fleet import submission as submissions
from prony.app.fleet.context import FleetContext
from prony.app.fleet.read_recipe import ReadOrder
from prony.app.fleet.state import FleetState, KnownAgent
from prony.app.recipe_forms import DUET_FORM
from prony.dispatch.matching import lacks
from prony.errors import InputError, RecipeError
from prony.model.check import Expected, Planned, RecipeCheck, RecipeProblem
from prony.model.job import Job
from prony.model.place import Demand
from prony.model.queue import Compatibility, Fit, LotFit, Submission
from prony.model.recipe_form import DraftedRecipe, FilledForm
from prony.ports.workload import kind_of
from prony.recipe import LoadedRecipe, dump
from prony.store.database import Connection
from prony.store.series import durations
from prony.store.series_points import fingerprint

# Where a job may leave its outputs, and whether gradients are recorded, which only its result tells.
_TIMED = tuple(product((None, "device", "pinned host"), (None, "off")))
# Kinds of machine: hardware and operating system.
Machine = tuple[str, str]
# A recipe of more jobs is estimated by none: to look for all of them would take longer than anybody waits.
_MOST_JOBS = 2000


def _estimate_duration(
    connection: Connection, jobs: Sequence[Job], machines: Iterable[Machine], *, shared: int
) -> Expected:
    """Return how long the jobs take where `shared` devices work on them at the same time."""
    if not jobs or len(jobs) > _MOST_JOBS:
        return Expected(basis="too many jobs to look up earlier durations")
    places = [(*machine, *timed) for machine in dict.fromkeys(machines) for timed in _TIMED]
    series = {job.id: [fingerprint(job, *place) for place in places] for job in jobs}
    took = durations(connection, sorted({one for ids in series.values() for one in ids}))
    earlier = {job.id: median(known) for job in jobs if (known := _past_durations(series[job.id], took))}
    seconds = [earlier.get(job.id, kind_of(job.workload).prepare.expected_seconds(job)) for job in jobs]
    unknown = sum(one is None for one in seconds)
    if unknown == len(jobs):
        return Expected(basis="no such job was measured on these machines before")
    if unknown:
        return Expected(basis=f"the duration of only {len(jobs) - unknown} of {len(jobs)} jobs is known")
    total = sum(one for one in seconds if one is not None) / max(1, min(shared, len(jobs)))
    return Expected(seconds=total, basis=_basis(len(earlier), len(jobs)))


def _basis(earlier: int, jobs: int) -> str:
    if earlier == jobs:
        return "earlier durations of the same jobs on these machines"
    told = "the durations of the loads in the recipe, without the start of the service"
    return told if not earlier else f"earlier durations of {earlier} of the jobs, and {told}"


def _past_durations(series: Iterable[str], took: Mapping[str, Sequence[float]]) -> list[float]:
    return [median(took[one]) for one in series if one in took]


_MOST_PLANNED = 200


class Recipes:
    """Check recipes, say which agents could run them, and write new ones of forms; nothing is stored."""

    def __init__(self, context: FleetContext, state: FleetState) -> None:
        self._context = context
        self._state = state

    async def check(self, submission: Submission) -> RecipeCheck:
        """Say what is wrong with a recipe; of one that is right, its jobs, who could run them, and how long."""
        try:
            read = await self._context.read_recipe(ReadOrder(submission), is_check=True)
        except RecipeError as exc:
            return RecipeCheck(problems=tuple(RecipeProblem.read(one) for one in exc.problems))
        except InputError as exc:  # a name that no plug-in has, or too many jobs: it stands nowhere in particular
            return RecipeCheck(problems=(RecipeProblem(message=exc.message, hint=exc.hint),))
        loaded, cells = read.loaded, read.cells
        known_agents = list(self._state.agents.values())
        lots, runnable = await self._context.checkers.in_thread(_hold_lots, loaded, cells, known_agents)
        machines, shared = _machines(known_agents, lots)
        looked = partial(_estimate_duration, jobs=cells, machines=machines, shared=1 if _is_each(loaded) else shared)
        return RecipeCheck(
            name=loaded.recipe.name,
            kind=loaded.recipe.workload.kind,
            dialect=loaded.dialect,
            notes=loaded.notes,
            jobs=len(cells),
            planned=_summarise_cells(cells),
            lots=lots,
            runnable=runnable,
            expected=await self._context.read(looked) if machines else None,
        )

    async def draft(self, filled: FilledForm) -> DraftedRecipe:
        """Return the recipe that the answers of a form mean; one that the form changes is read within limits."""
        if filled.form == DUET_FORM.name:
            duet = await self._context.checkers.in_thread(draft_duet, filled)
            read = await self._context.read_recipe(ReadOrder(duet), is_check=True)
            return DraftedRecipe(text=dump(read.loaded.recipe))
        return DraftedRecipe(text=await self._context.checkers.in_thread(draft_recipe, filled))

    async def compatibility(self, submission: Submission) -> Compatibility:
        """Say for each agent whether it could run each lot of a recipe, and what it lacks."""
        read = await self._context.read_recipe(ReadOrder(submission), is_check=True)
        known_agents = list(self._state.agents.values())
        lots, runnable = await self._context.checkers.in_thread(_hold_lots, read.loaded, read.cells, known_agents)
        return Compatibility(lots=lots, runnable=runnable)


def _summarise_cells(cells: Sequence[Job]) -> tuple[Planned, ...]:
    return tuple(Planned(title=job.title, cell=job.cell) for job in cells[:_MOST_PLANNED])


def _is_each(loaded: LoadedRecipe) -> bool:
    """Does every device run every job, all at the same time?"""
    return loaded.recipe.place.devices == "each"


def _machines(known_agents: Sequence[KnownAgent], lots: Sequence[LotFit]) -> tuple[list[Machine], int]:
    """Return the kinds of machine that fit a lot, and on how many devices."""
    fitting = {one.agent_id for lot in lots for one in lot.agents if one.fits}
    there = [known_agent for known_agent in known_agents if known_agent.id in fitting]
    known = [known_agent.capabilities.device for known_agent in there]
    machines = [(device.hardware_id, device.software.os) for device in known if device is not None]
    return list(dict.fromkeys(machines)), len({known_agent.device_key for known_agent in there})


def _hold_lots(
    loaded: LoadedRecipe, cells: Sequence[Job], known_agents: Sequence[KnownAgent]
) -> tuple[tuple[LotFit, ...], bool]:
    """Hold each lot against each agent; True where all lots could run. May be asked from any thread."""
    wants = tuple(
        LotFit(demand=demand, jobs=count, agents=tuple(_fit(known_agent, demand) for known_agent in known_agents))
        for demand, count in submissions.demands(loaded, cells)
    )
    return wants, all(_devices(known_agents, lot) >= lot.demand.agents for lot in wants)


def _fit(known_agent: KnownAgent, demand: Demand) -> Fit:
    offered = known_agent.capabilities
    lacking = lacks(demand, offered.facts, offered.reason_for)  # not remembered: it is only a question
    return Fit(
        agent_id=known_agent.id, agent_name=known_agent.name, state=known_agent.state, fits=not lacking, lacks=lacking
    )


def _devices(known_agents: Sequence[KnownAgent], lot: LotFit) -> int:
    """Return on how many devices the lot could run at once."""
    fitting = {one.agent_id for one in lot.agents if one.fits}
    return len({known_agent.device_key for known_agent in known_agents if known_agent.id in fitting})
