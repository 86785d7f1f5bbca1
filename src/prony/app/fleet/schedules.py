"""Schedules of a fleet: made, listed, paused, fired when they are due or when somebody asks.

The functions work in an open transaction, with a server and without one. A fire and the experiment that it makes are
one transaction, and the fire's key is the schedule with its due instant: of several servers that see the same instant
come one makes the experiment, and one that is killed did all or nothing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile

from prony.app.check_jobs import new_id
from prony.app.fleet.alarm_engine import AlarmEngine, check_missed_fires
from prony.app.fleet.context import FleetContext
from prony.app.fleet.read_recipe import ReadRecipe
from prony.app.fleet.scripts import check_scripts
from prony.app.fleet.state import FleetState
from prony.app.fleet.submission import (
    Offers,
    SubmissionPlan,
    list_offers,
    order_for,
    plan_experiment,
    store_plan,
    write_plan,
)
from prony.errors import ConflictError, InputError, PronyError
from prony.model.access import Principal
from prony.model.cron import Timing
from prony.model.queue import Page, Submission
from prony.model.schedule import Fire, NewSchedule, Schedule, ScheduleState
from prony.store import schedules
from prony.store.home import Home
from prony.store.writer import Transaction

# What is later than this was missed: a server looks around every second.
GRACE = timedelta(seconds=60)
# Of the times that were missed, so many are counted, and with `all` so many run.
MOST_COUNTED = 10_000
MOST_MADE_UP = 100


def build_schedule(new: NewSchedule, read: ReadRecipe, home: Home, *, now: datetime, who: str) -> Schedule:
    """Return the schedule that somebody asks for, with its recipe checked as if it were submitted now."""
    recipe = read.loaded.recipe
    given = {name: value for name in ("cron", "zone", "missed") if (value := getattr(new, name)) is not None}
    own = recipe.schedule.model_dump() if recipe.schedule is not None else {}
    if "cron" not in given | own:
        raise InputError(
            "no time is given: neither --cron nor the recipe's `schedule`",
            hint="as in --cron '0 3 * * *' --zone Europe/Paris",
            code="no_schedule_time",
        )
    check_scripts(plan_experiment(read, dict, now=now, who=who).jobs, home)
    timing = Timing.model_validate(own | given)
    named = new.name or recipe.name
    return _schedule_of(named, recipe.name, timing, new.submission, now=now, who=who)


def _schedule_of(
    name: str, recipe: str, timing: Timing, submission: Submission, *, now: datetime, who: str
) -> Schedule:
    """Return a schedule that goes on from now."""
    return Schedule(
        id=new_id(time.time(), chance=4),
        name=name,
        recipe=recipe,
        timing=timing,
        state=ScheduleState.ACTIVE,
        next_at=timing.after(now),
        created_at=now,
        created_by=who,
        submission=submission,
    )


def keep_recipe_schedule(
    transaction: Transaction, plan: SubmissionPlan, submission: Submission, *, now: datetime
) -> str | None:
    """Keep the schedule that a submitted recipe brings, in the place of an earlier one of its name; return its id."""
    recipe = plan.experiment.recipe
    if recipe.schedule is None:
        return None
    who = plan.experiment.submitted_by
    found = _schedule_of(recipe.name, recipe.name, recipe.schedule, submission, now=now, who=who)
    return schedules.replace(transaction.connection, found)


def pause_schedule(transaction: Transaction, text: str) -> Schedule:
    return _move(transaction, text, ScheduleState.PAUSED, None)


def resume_schedule(transaction: Transaction, text: str, *, now: datetime) -> Schedule:
    """Go on with the next time from now on: what was due in the pause was not wanted."""
    return _move(transaction, text, ScheduleState.ACTIVE, now)


def _move(transaction: Transaction, text: str, state: ScheduleState, now: datetime | None) -> Schedule:
    found = schedules.find(transaction.connection, text, locked=True)
    if found.state is state:
        raise ConflictError(f"schedule {found.name} is {state} already", hint="`prony schedule list` shows all")
    schedules.move(transaction.connection, found.id, state, found.timing.after(now) if now is not None else None)
    transaction.publish("schedules", found.id)
    return schedules.find(transaction.connection, found.id)


def remove_schedule(transaction: Transaction, text: str) -> str:
    """Forget a schedule with its history; its experiments stay. Return its id."""
    found = schedules.find(transaction.connection, text, locked=True)
    schedules.remove(transaction.connection, found.id)
    transaction.publish("schedules", found.id)
    return found.id


# Firing


@dataclass(frozen=True)
class Turn:
    """One thing that is to be done for a schedule: its row goes from `begin` to `next_at`."""

    begin: datetime
    due_at: datetime
    next_at: datetime
    cause: str = "due"
    missed: int = 0


def list_turns(timing: Timing, begin: datetime, now: datetime) -> list[Turn]:
    """Return what is to be done now for a schedule whose next time was `begin`, by its policy on missed times."""
    later = takewhile(lambda due: due <= now, timing.dues(begin))
    dues = [begin, *islice(later, MOST_COUNTED - 1)]
    late = [due for due in dues if now - due > GRACE]
    fresh = dues[len(late) :]
    found: list[Turn] = []
    if late and timing.missed == "skip":
        found = [Turn(begin, late[-1], begin, "skipped", len(late) - 1)]
    elif late and timing.missed == "once":
        found, fresh = [Turn(begin, dues[-1], begin, "late", len(dues) - 1)], []
    elif late:
        run = late[-MOST_MADE_UP:]
        found = [Turn(begin, due, begin, "late") for due in run]
        found[0] = replace(found[0], missed=len(late) - len(run))
    found += [Turn(due, due, due) for due in fresh]
    ends = [turn.due_at for turn in found[1:]] + [timing.after(now)]
    begins = [begin, *ends[:-1]]
    return [replace(turn, begin=one, next_at=end) for turn, one, end in zip(found, begins, ends, strict=True)]


def plan_fire(schedule: Schedule, read: ReadRecipe, offers: Offers, *, now: datetime) -> SubmissionPlan | PronyError:
    """Return the experiment that a schedule makes now, or why there is none."""
    try:
        found = plan_experiment(read, offers, now=now, who=schedule.created_by)
    except PronyError as exc:
        return exc
    found = found.of_schedule(schedule.id)
    git = found.experiment.git
    # It is run again because time passes: its place among the results of other commits is by time.
    return found if git is None else found.at_commit(git.model_copy(update={"position": None, "root": None}))


def _take_turn(
    transaction: Transaction, schedule: Schedule, turn: Turn, made: SubmissionPlan | PronyError | None, *, now: datetime
) -> Fire | None:
    """Carry out one turn; None where somebody else did, or the schedule was changed meanwhile."""
    kept = schedules.find(transaction.connection, schedule.id, locked=True)
    if kept.state is not ScheduleState.ACTIVE or kept.next_at != turn.begin or kept.submission != schedule.submission:
        return None
    schedules.move(transaction.connection, schedule.id, ScheduleState.ACTIVE, turn.next_at)
    return _record_fire(transaction, schedule.id, turn, made, now=now)


def fire_now(transaction: Transaction, schedule: Schedule, made: SubmissionPlan | PronyError, *, now: datetime) -> Fire:
    """Fire once beside the plan, paused or not."""
    if isinstance(made, PronyError):
        raise made
    schedules.find(transaction.connection, schedule.id, locked=True)
    fire = None
    while fire is None:  # another asked in the same microsecond
        fire = _record_fire(transaction, schedule.id, Turn(now, now, now, "now"), made, now=now)
        now += timedelta(microseconds=1)
    return fire


def _record_fire(
    transaction: Transaction, schedule_id: str, turn: Turn, made: SubmissionPlan | PronyError | None, *, now: datetime
) -> Fire | None:
    plan = made if isinstance(made, SubmissionPlan) else None
    fire = Fire.model_validate(
        {
            "schedule_id": schedule_id,
            "due_at": turn.due_at,
            "fired_at": now,
            "cause": "failed" if isinstance(made, PronyError) else turn.cause,
            "experiment_id": plan.experiment.id if plan else None,
            "missed": turn.missed,
            "reason": made.message if isinstance(made, PronyError) else _describe_turn(turn),
        }
    )
    if not schedules.add_fire(transaction.connection, fire):
        return None
    transaction.publish("schedules", schedule_id)
    if plan is not None:
        store_plan(transaction, plan)
    return fire


def _describe_turn(turn: Turn) -> str:
    if turn.cause == "skipped":
        return f"{turn.missed + 1} missed while no server was up"
    return f"{turn.missed} earlier missed while no server was up" if turn.missed else ""


# So many schedules are looked after in one round; the next round goes on.
_TOGETHER = 20


class Schedules:
    """Add, list, pause and remove schedules, and fire those that are due."""

    def __init__(self, context: FleetContext, state: FleetState, alarm_engine: AlarmEngine) -> None:
        self._context = context
        self._state = state
        self._alarm_engine = alarm_engine

    async def add(self, new: NewSchedule, *, who: Principal) -> Schedule:
        read = await self._context.read_recipe(order_for(new.submission))
        home, now = self._context.store.home, self._context.clock.now()
        found = await self._context.readers.in_thread(build_schedule, new, read, home, now=now, who=who.name)
        await self._context.through(
            self._context.write(lambda transaction: schedules.add(transaction.connection, found))
        )
        self._context.hook("scheduled", schedule=found.id, name=found.name, who=who.name)
        return found

    async def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[Schedule]:
        return await self._context.read(lambda connection: schedules.page(connection, limit, cursor))

    async def get(self, schedule_id: str) -> Schedule:
        return await self._context.read(lambda connection: schedules.find(connection, schedule_id))

    async def fires(self, schedule_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Fire]:
        return await self._context.read(
            lambda connection: schedules.fires(connection, schedules.find(connection, schedule_id).id, limit, cursor)
        )

    async def pause(self, schedule_id: str, *, who: Principal) -> Schedule:
        self._context.hook("paused", schedule=schedule_id, who=who.name)
        return await self._context.write(lambda transaction: pause_schedule(transaction, schedule_id))

    async def resume(self, schedule_id: str, *, who: Principal) -> Schedule:
        self._context.hook("resumed", schedule=schedule_id, who=who.name)
        return await self._context.write(
            lambda transaction: resume_schedule(transaction, schedule_id, now=self._context.clock.now())
        )

    async def remove(self, schedule_id: str, *, who: Principal) -> None:
        await self._context.write(lambda transaction: remove_schedule(transaction, schedule_id))
        self._context.hook("unscheduled", schedule=schedule_id, who=who.name)

    async def run_now(self, schedule_id: str, *, who: Principal) -> Fire:
        """Submit its recipe now, beside the plan."""
        found = await self.get(schedule_id)
        now = self._context.clock.now()
        plan = await self._plan_of(found, now)
        writing = self._context.write(lambda transaction: fire_now(transaction, found, plan, now=now))
        fire = await self._context.through(write_plan(self._state, plan, writing))
        self._context.hook("fired", schedule=found.id, experiment=fire.experiment_id, who=who.name)
        return fire

    async def fire_due(self) -> None:
        """Fire what is due."""
        now = self._context.clock.now()
        for found in await self._context.read(lambda connection: schedules.due(connection, now, _TOGETHER)):
            begin = found.next_at
            if begin is not None:
                for turn in await asyncio.to_thread(list_turns, found.timing, begin, now):
                    await self._take_turn(found, turn)

    async def _take_turn(self, found: Schedule, turn: Turn) -> None:
        now = self._context.clock.now()
        plan = None
        if turn.cause != "skipped":
            plan = await self._plan_of(found, now)

        def act(transaction: Transaction) -> Fire | None:
            fire = _take_turn(transaction, found, turn, plan, now=now)
            happening = check_missed_fires(found, fire) if fire is not None else None
            if happening is not None:
                self._alarm_engine.report(transaction, happening)
            return fire

        fire = await write_plan(self._state, plan, self._context.write(act))
        if fire is not None:
            told = fire.model_dump(include={"cause", "missed", "reason"})
            self._context.hook("fired", schedule=found.id, experiment=fire.experiment_id, **told)

    async def _plan_of(self, found: Schedule, now: datetime) -> SubmissionPlan | PronyError:
        """Return the experiment that a schedule makes now, or why there is none."""
        try:
            read = await self._context.read_recipe(order_for(found.submission))
        except PronyError as exc:
            return exc
        return await self._context.readers.in_thread(plan_fire, found, read, list_offers(self._state), now=now)
