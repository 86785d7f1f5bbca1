"""Helpers that trigger alarms in a fleet and read the messages sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from prony.model.alarm import Delivery, Happening, MadeAlarm, NewAlarm
from prony.model.condition import Kind
from servers.receiver import Receiver

from .ground import ME, Ground, Hand, recipe
from .parcels import SUT


async def alarmed(ground: Ground, there: Receiver | None, when: str = "experiment failed", **more: Any) -> MadeAlarm:
    asked = {"name": "ops", "when": when, "to": [there.url()] if there else [], **more}
    return await ground.fleet.alarms.add(NewAlarm.model_validate(asked), who=ME)


async def pass_to(ground: Ground, **delta: float) -> None:
    """Let time go on, and do all that follows: a message is made in one round and sent in the next."""
    ground.clock.step(**delta)
    ground.seconds += timedelta(**delta).total_seconds()
    await ground.look()
    await ground.look()


async def report(ground: Ground, kind: Kind = "gate_failed", subject: str = "p99", **more: Any) -> None:
    happening = Happening(kind=kind, subject=subject, at=ground.clock.now(), text=f"{subject} is bad", **more)
    await ground.fleet.context.write(lambda transaction: ground.fleet.alarm_engine.report(transaction, happening))


async def failed(ground: Ground, hand: Hand, name: str = "small", state: str = "failed") -> None:
    """Let an experiment of one job end."""
    await ground.submit(recipe(1, name))
    lease = await hand.lease()
    await hand.finish(lease, state, failure=SUT if state == "failed" else None)


def told(there: Receiver) -> list[tuple[str, int]]:
    return [(one.json["kind"], one.json["count"]) for one in there.received]


async def sent(ground: Ground, name: str = "ops") -> list[Delivery]:
    return list((await ground.fleet.alarms.deliveries(name)).items)[::-1]
