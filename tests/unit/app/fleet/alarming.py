"""Helpers that trigger alarms in a fleet and read the messages sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from prony.model.alarm import Delivery, Happening, Kind, MadeAlarm, NewAlarm
from servers.receiver import Receiver

from .fleet_fixture import ME, FakeAgent, FleetFixture, recipe
from .parcels import SUT


async def alarmed(
    fleet_fixture: FleetFixture, there: Receiver | None, when: str = "experiment failed", **more: Any
) -> MadeAlarm:
    asked = {"name": "ops", "when": when, "to": [there.url()] if there else [], **more}
    return await fleet_fixture.fleet.alarms.add(NewAlarm.model_validate(asked), who=ME)


async def pass_to(fleet_fixture: FleetFixture, **delta: float) -> None:
    """Let time go on, and do all that follows: a message is made in one round and sent in the next."""
    fleet_fixture.clock.step(**delta)
    fleet_fixture.seconds += timedelta(**delta).total_seconds()
    await fleet_fixture.look()
    await fleet_fixture.look()


async def report(fleet_fixture: FleetFixture, kind: Kind = "gate_failed", subject: str = "p99", **more: Any) -> None:
    happening = Happening(kind=kind, subject=subject, at=fleet_fixture.clock.now(), text=f"{subject} is bad", **more)
    await fleet_fixture.fleet.context.write(
        lambda transaction: fleet_fixture.fleet.alarm_engine.report(transaction, happening)
    )


async def failed(
    fleet_fixture: FleetFixture, fake_agent: FakeAgent, name: str = "small", state: str = "failed"
) -> None:
    """Let an experiment of one job end."""
    await fleet_fixture.submit(recipe(1, name))
    lease = await fake_agent.lease()
    await fake_agent.finish(lease, state, failure=SUT if state == "failed" else None)


def told(there: Receiver) -> list[tuple[str, int]]:
    return [(one.json["kind"], one.json["count"]) for one in there.received]


async def sent(fleet_fixture: FleetFixture, name: str = "ops") -> list[Delivery]:
    return list((await fleet_fixture.fleet.alarms.deliveries(name)).items)[::-1]
