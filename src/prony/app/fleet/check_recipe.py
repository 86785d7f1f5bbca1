"""A recipe's text in, all that can be said of it before it is submitted out; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from prony.app.fleet import submission as submissions
from prony.app.fleet.estimate_duration import Machine, estimate_duration
from prony.app.fleet.overview import Overview
from prony.app.fleet.state import KnownAgent
from prony.errors import InputError, RecipeError
from prony.model.check import Planned, RecipeCheck, RecipeProblem
from prony.model.job import Job
from prony.model.queue import LotFit, Submission
from prony.recipe import LoadedRecipe

_MOST_PLANNED = 200


class Checking(Overview):
    """Looked at, and left alone."""

    async def check(self, submission: Submission) -> RecipeCheck:
        """Say what is wrong with a recipe; of one that is right, its jobs, who could run them, and how long."""
        try:
            read = await self.read_recipe(submissions.ReadOrder(submission), is_check=True)
        except RecipeError as exc:
            return RecipeCheck(problems=tuple(RecipeProblem.read(one) for one in exc.problems))
        except InputError as exc:  # a name that no plug-in has, or too many jobs: it stands nowhere in particular
            return RecipeCheck(problems=(RecipeProblem(message=exc.message, hint=exc.hint),))
        loaded, cells = read.loaded, read.cells
        cards = list(self.floor.cards.values())
        lots, runnable = await self.checkers.in_thread(self.fits, loaded, cells, cards)
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
            expected=await self.read(looked) if machines else None,
        )


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
