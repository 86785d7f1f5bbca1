"""Store a planned experiment and let its jobs wait, with the notes that tell who waits for such work."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from prony.app.fleet.submission import Offer, Offers, Plan
from prony.errors import PronyError
from prony.model.states import IDLE_ONLY
from prony.store import experiments, queue
from prony.store.writer import Operation, Transaction

if TYPE_CHECKING:
    from prony.app.fleet.context import FleetContext
    from prony.app.fleet.state import FleetState

T = TypeVar("T")


def list_offers(state: FleetState) -> Offers:
    """Return who could be given work; of several agents of a device, one that is known longer comes first."""
    agents = tuple(state.agents.values())
    return lambda: {
        one.id: Offer(one.device_key, one.capabilities.facts) for one in agents if one.state not in IDLE_ONLY
    }


async def write_plan(
    context: FleetContext, state: FleetState, plan: Plan | PronyError | None, operation: Operation[T]
) -> T:
    """Write with the plan's lots in mind, so that whoever waits is offered them at once."""
    if not isinstance(plan, Plan):
        return await context.write(operation)
    with state.expect_lots(plan.lots.values()):
        return await context.write(operation)


def keep(desk: Transaction, made: Plan) -> None:
    """Store the experiment and let its jobs wait."""
    experiments.add_submitted(desk.connection, made.experiment)
    desk.tell("job", f"{made.experiment.id}/")
    enqueue(desk, made)


def enqueue(desk: Transaction, made: Plan) -> None:
    """Let its jobs wait; the experiment is stored."""
    queue.add(desk.connection, made.jobs, made.lots, tries=made.tries, now=made.experiment.created_at)
    for lot_id, count in Counter(lot.id for lot in made.lots.values()).items():
        desk.tell("lot", lot_id, count)
