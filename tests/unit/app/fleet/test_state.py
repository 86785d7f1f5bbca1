"""What a server has in mind: who is woken, what is forgotten, and what happens while the database is asked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from prony.app.fleet.state import FleetState, HeldLease, KnownAgent
from prony.model.agent import AgentState, Capabilities
from prony.model.place import Demand
from prony.model.queue import Lot

pytestmark = pytest.mark.anyio

AT = datetime(2025, 1, 1, tzinfo=UTC)
FACTS = {"kinds": ("model",)}


def known_agent(name: str, *, device: str = "", state: AgentState = AgentState.ACTIVE, able: bool = True) -> KnownAgent:
    facts = FACTS if able else {}
    return KnownAgent(name, name, state, device or name, "life", Capabilities.model_validate({"facts": facts}))


def lot(name: str = "lot", *, experiment: str = "e", agent: str | None = None) -> Lot:
    return Lot(id=name, experiment_id=experiment, demand=Demand(), agent_id=agent, created_at=AT)


def held(name: str, *, device: str = "a", agent: str = "a") -> HeldLease:
    return HeldLease(name, f"job-{name}", "e", agent, device, 1)


def waiting(floor: FleetState, *known_agents: KnownAgent) -> None:
    for one in known_agents:
        floor.keep(one)
        floor.waiters[one.id] = asyncio.get_running_loop().create_future()


async def test_as_many_are_woken_as_there_are_jobs_and_only_who_could_run_them() -> None:
    floor = FleetState()
    waiting(
        floor,
        known_agent("unable", able=False),
        known_agent("draining", state=AgentState.DRAINING),
        known_agent("one"),
        known_agent("twin", device="one"),
        known_agent("two"),
        known_agent("three"),
    )
    floor.offer(lot(), count=2)
    assert set(floor.waiters) == {"unable", "draining", "twin", "three"}


async def test_who_is_on_a_device_that_is_occupied_sleeps_until_it_is_free() -> None:
    floor = FleetState()
    waiting(floor, known_agent("one", device="d"), known_agent("two", device="d"), known_agent("other"))
    floor.hold(held("l", device="d", agent="one"))
    floor.offer(lot(), count=5)
    assert set(floor.waiters) == {"one", "two"}
    floor.release("l")
    assert floor.waiters == {}


async def test_a_lot_that_was_empty_is_forgotten_unless_more_came_since_it_was_asked() -> None:
    floor = FleetState()
    floor.offer(lot("one"), 1)
    floor.offer(lot("two"), 1)
    asked = [(pending, pending.generation) for pending in floor.lots.values()]
    assert floor.again("two")
    floor.forget_empty(asked)
    assert set(floor.lots) == {"two"}
    assert not floor.again("one")


async def test_what_the_database_says_of_lots_does_not_undo_what_came_while_it_was_asked() -> None:
    floor = FleetState()
    for name in ("gone", "grown", "kept"):
        floor.offer(lot(name), 1)
    known = floor.lots_with_work()
    floor.again("grown")
    floor.offer(lot("fresh"), 1)
    floor.see_lots([lot("kept"), lot("found")], known)
    assert set(floor.lots) == {"grown", "fresh", "kept", "found"}


async def test_a_lease_that_is_made_or_ended_while_the_database_is_asked_is_not_forgotten_nor_brought_back() -> None:
    floor = FleetState()
    floor.hold(held("ended", device="d1"))
    floor.begin_look()
    floor.hold(held("fresh", device="d2"))
    floor.release("ended")
    floor.see_leases([held("ended", device="d1"), held("theirs", device="d3")])
    assert set(floor.held) == {"fresh", "theirs"}
    assert floor.devices == {"d2": "fresh", "d3": "theirs"}
    assert floor.running == {"e": 2}
    floor.begin_look()
    floor.see_leases([])
    assert floor.held == {}


async def test_agents_of_a_device_that_the_database_says_is_free_are_woken() -> None:
    floor = FleetState()
    waiting(floor, known_agent("one", device="d"))
    floor.hold(held("l", device="d", agent="other"))
    floor.begin_look()
    floor.see_leases([])
    assert floor.waiters == {}


async def test_experiments_that_wait_no_more_are_not_remembered_for_ever() -> None:
    floor = FleetState()
    for number in range(5):
        floor.offer(lot(f"l{number}", experiment=f"e{number}"), 1)
        floor.hold(HeldLease(f"h{number}", "j", f"e{number}", "a", f"d{number}", 1))
    floor.see_lots([lot("l3", experiment="e3")], floor.lots_with_work())
    assert set(floor.served) == {"e3"}


async def test_only_who_could_run_it_now_keeps_another_from_being_alone() -> None:
    floor = FleetState()
    me, gone = known_agent("me"), known_agent("gone", state=AgentState.LOST)
    for one in (me, gone, known_agent("unable", able=False)):
        floor.keep(one)
    floor.offer(lot("any"), 1)
    floor.offer(lot("mine", agent="me"), 1)
    assert floor.is_alone(me, floor.lots["any"])
    floor.keep(known_agent("other"))
    assert not floor.is_alone(me, floor.lots["any"])
    assert floor.is_alone(me, floor.lots["mine"])


async def test_a_card_forgets_what_it_fits_before_it_knows_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.app.fleet.state._MOST_FITS", 10)
    one = known_agent("one")
    for number in range(50):
        demand = Demand(where={"label.x": str(number)})
        assert one.lacks(demand, demand.id)
    assert len(one.fits) <= 10
