"""A recipe's text in, all that can be said of it before it is submitted out; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from prony.app.fleet import submission as submissions
from prony.app.fleet.context import FleetContext
from prony.app.fleet.estimate_duration import Machine, estimate_duration
from prony.app.fleet.state import FleetState, KnownAgent
from prony.dispatch.matching import lacks
from prony.errors import InputError, RecipeError
from prony.model.check import Planned, RecipeCheck, RecipeProblem
from prony.model.job import Job
from prony.model.place import Demand
from prony.model.queue import Compatibility, Fit, LotFit, Submission
from prony.recipe import LoadedRecipe

_MOST_PLANNED = 200


class Recipes:
    """Check recipes and say which agents could run them; nothing is stored."""

    def __init__(self, context: FleetContext, state: FleetState) -> None:
        self._context = context
        self._state = state

    async def check(self, submission: Submission) -> RecipeCheck:
        """Say what is wrong with a recipe; of one that is right, its jobs, who could run them, and how long."""
        try:
            read = await self._context.read_recipe(submissions.ReadOrder(submission), is_check=True)
        except RecipeError as exc:
            return RecipeCheck(problems=tuple(RecipeProblem.read(one) for one in exc.problems))
        except InputError as exc:  # a name that no plug-in has, or too many jobs: it stands nowhere in particular
            return RecipeCheck(problems=(RecipeProblem(message=exc.message, hint=exc.hint),))
        loaded, cells = read.loaded, read.cells
        cards = list(self._state.agents.values())
        lots, runnable = await self._context.checkers.in_thread(hold_lots, loaded, cells, cards)
        machines, shared = _machines(cards, lots)
        looked = partial(estimate_duration, jobs=cells, machines=machines, shared=1 if _is_each(loaded) else shared)
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

    async def compatibility(self, submission: Submission) -> Compatibility:
        """Say for each agent whether it could run each lot of a recipe, and what it lacks."""
        read = await self._context.read_recipe(submissions.ReadOrder(submission), is_check=True)
        cards = list(self._state.agents.values())
        lots, runnable = await self._context.checkers.in_thread(hold_lots, read.loaded, read.cells, cards)
        return Compatibility(lots=lots, runnable=runnable)


def _summarise_cells(cells: Sequence[Job]) -> tuple[Planned, ...]:
    return tuple(Planned(title=job.title, cell=job.cell) for job in cells[:_MOST_PLANNED])


def _is_each(loaded: LoadedRecipe) -> bool:
    """Does every device run every job, all at the same time?"""
    return loaded.recipe.place.devices == "each"


def _machines(cards: Sequence[KnownAgent], lots: Sequence[LotFit]) -> tuple[list[Machine], int]:
    """Return the kinds of machine that fit a lot, and on how many devices."""
    fitting = {one.agent_id for lot in lots for one in lot.agents if one.fits}
    there = [card for card in cards if card.id in fitting]
    known = [card.capabilities.device for card in there]
    machines = [(device.hardware_id, device.software.os) for device in known if device is not None]
    return list(dict.fromkeys(machines)), len({card.device_key for card in there})


def hold_lots(
    loaded: LoadedRecipe, cells: Sequence[Job], cards: Sequence[KnownAgent]
) -> tuple[tuple[LotFit, ...], bool]:
    """Hold each lot against each agent; True where all lots could run. May be asked from any thread."""
    wants = tuple(
        LotFit(demand=demand, jobs=count, agents=tuple(_fit(card, demand) for card in cards))
        for demand, count in submissions.demands(loaded, cells)
    )
    return wants, all(_devices(cards, lot) >= lot.demand.agents for lot in wants)


def _fit(card: KnownAgent, demand: Demand) -> Fit:
    offered = card.capabilities
    lacking = lacks(demand, offered.facts, offered.reason_for)  # not remembered: it is only a question
    return Fit(agent_id=card.id, agent_name=card.name, state=card.state, fits=not lacking, lacks=lacking)


def _devices(cards: Sequence[KnownAgent], lot: LotFit) -> int:
    """Return on how many devices the lot could run at once."""
    fitting = {one.agent_id for one in lot.agents if one.fits}
    return len({card.device_key for card in cards if card.id in fitting})
