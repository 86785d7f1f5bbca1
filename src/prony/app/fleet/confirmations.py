"""Runs that decide a regression which a history suspects: planned, begun once, judged when they have ended.

A batch and the experiment that it runs are one transaction, and the batch's key is the change with its number: of
several servers one makes it, and one that is killed did all or nothing. So is how a batch ended and what the change
is then.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from prony.analyse.history.causes import CANARY, canary_moved
from prony.analyse.history.confirmation import MORE, PAIRS, ROUNDS, last_good, round_pause
from prony.analyse.history.detect import Rules
from prony.analyse.history.machine_record import LONGEST_RECORD
from prony.analyse.history.sides import Sides, Version, find_sides
from prony.app import change_decisions
from prony.app.check_jobs import new_id
from prony.app.fleet.context import FleetContext
from prony.app.fleet.experiments import Experiments
from prony.app.fleet.histories import NOT_YET, Histories
from prony.app.fleet.scripts import check_scripts
from prony.app.fleet.state import FleetState
from prony.app.fleet.submission import SubmissionPlan, store_plan, write_plan
from prony.dispatch.matching import demand_of
from prony.errors import NotFoundError, PronyError
from prony.model.access import Principal, Role
from prony.model.estimate import Grade, verdict_on
from prony.model.experiment import Experiment, ExperimentState
from prony.model.history import Change, ChangeState, Point
from prony.model.job import Job
from prony.model.queue import Lot
from prony.model.recipe import Duet, Matrix, Recipe
from prony.model.states import IDLE_ONLY
from prony.recipe import dump
from prony.recipe.expand import expand
from prony.store import confirmations, queue, result_rows
from prony.store import series as series_rows
from prony.store.confirmations import Batch
from prony.store.database import Connection
from prony.store.writer import Transaction

# Who made them, and after everybody else's.
WHO, PRIORITY = "prony", -100
# So many results of the old level are enough to hold runs of today against; fewer than the first say nothing.
_LEAST_BEFORE, _MOST_BEFORE = PAIRS, Rules().window


@dataclass(frozen=True)
class Case:
    """`before`: the results of the old level from the same agent; `earlier`: all of that agent before the change;
    `sides`: what to set to have the old version and the new one, or why that cannot be done; `pause`: how long to wait
    between two rounds of repetitions."""

    change: Change
    job: Job
    recipe: Recipe
    agent_id: str
    before: tuple[change_decisions.RepeatedRun, ...]
    earlier: change_decisions.EarlierRuns
    sides: Sides | str
    pause: timedelta


@dataclass(frozen=True)
class _Refusal:
    """Why nothing is run; `waits_for` is the agent that may come back, where that is all that is missing."""

    reason: str
    waits_for: str | None = None


@dataclass(frozen=True)
class _Pause:
    """The next round is begun then, and not before."""

    until: datetime


@dataclass(frozen=True)
class Trial:
    """One batch that is to be run; `count` pairs or runs."""

    way: str
    count: int

    @property
    def runs(self) -> int:
        return 2 * self.count if self.way == "duet" else self.count

    def text(self, case: Case) -> str:
        if self.way == "duet" and isinstance(case.sides, Sides):
            return f"{self.count} pairs of {case.sides.text}, run alternately"
        return f"the same job {self.count} time{'' if self.count == 1 else 's'} more"


def _study_change(connection: Connection, change: Change, is_there: Callable[[str], bool | None]) -> Case | _Refusal:
    """Return what can be run for a change, or why nothing can.

    `is_there`: may an agent be given work? None where it is known no more.
    """
    points = [one for one in series_rows.points(connection, change.series_id) if _counts(one, change.metric)]
    position = next((place for place, one in enumerate(points) if one.job_id == change.job_id), 0)
    if position == 0:
        return _Refusal("the result of the change, or those before it, were deleted")
    earlier = points[max(0, position - change.before.runs) : position]
    known = points[max(0, position - LONGEST_RECORD) : position]
    agents = confirmations.agents_of(connection, [one.job_id for one in (*known, points[position])])
    agent_id = agents.get(change.job_id)
    if agent_id is None:
        return _Refusal("the result came from no agent of this server")
    if not (standing := is_there(agent_id)):
        told = f"agent {agent_id}, which measured it, {'was removed' if standing is None else 'is not available'}"
        return _Refusal(told, None if standing is None else agent_id)
    job = Job.read_json(queue.job_document(connection, change.job_id))
    if job.agents > 1:
        return _Refusal("several agents ran it together")
    old = points[last_good(position, position - len(earlier), is_alone=is_alone(change))]
    own = [one for one in earlier if agents.get(one.job_id) == agent_id]
    before = _repeated_runs(own[-_MOST_BEFORE:], change.metric)
    record = _earlier_runs(connection, change, [one for one in known if agents.get(one.job_id) == agent_id])
    recipe = result_rows.experiment(connection, change.experiment_id).recipe
    pause = round_pause([one.measured_at for one in points])
    before_change = Version(old, Job.read_json(queue.job_document(connection, old.job_id)))
    sides = find_sides(before_change, Version(points[position], job))
    return Case(change, job, recipe, agent_id, before, record, sides, pause)


def _repeated_runs(points: Sequence[Point], metric: str) -> tuple[change_decisions.RepeatedRun, ...]:
    return tuple(change_decisions.RepeatedRun(one.values[metric], one.canary) for one in points)


def _earlier_runs(connection: Connection, change: Change, points: Sequence[Point]) -> change_decisions.EarlierRuns:
    """Return these results, and where among them changes began that were confirmed or acknowledged."""
    real = {
        one.job_id
        for one in series_rows.changes(connection, change.series_id)
        if one.metric == change.metric and one.state in (ChangeState.CONFIRMED, ChangeState.ACKNOWLEDGED)
    }
    borders = tuple(place for place, one in enumerate(points) if one.job_id in real)
    return change_decisions.EarlierRuns(_repeated_runs(points, change.metric), borders)


def is_alone(change: Change) -> bool:
    """Is it one result by itself that is suspicious?"""
    return change.p is None and change.after.runs == 1


def _counts(point: Point, metric: str) -> bool:
    return point.grade is not Grade.VOID and point.values.get(metric, 0.0) > 0


def _next_trial(case: Case, batches: Sequence[Batch]) -> Trial | _Refusal:
    """Return the batch that comes after these, the first by default; or why there is none."""
    can_repeat = len(case.before) >= _LEAST_BEFORE
    if not batches and can_repeat and is_alone(case.change):
        return Trial("once", 1)  # a spike ends here, and has cost one run
    has_failed = any(one.way == "duet" and one.outcome == "failed" for one in batches)
    way = "duet" if isinstance(case.sides, Sides) and not has_failed else "again"
    if way == "again" and not can_repeat:
        why = "the alternating runs failed" if isinstance(case.sides, Sides) else case.sides
        return _Refusal(
            f"{why}, and only {len(case.before)} earlier results are from this agent ({_LEAST_BEFORE} are needed)"
        )
    done = sum(one.way == way and one.outcome == "open" for one in batches)
    return Trial(way, ROUNDS[done]) if way == "again" else Trial(way, MORE if done else PAIRS)


def _plan_batch(case: Case, trial: Trial, *, now: datetime) -> SubmissionPlan:
    """Return the experiment that runs a batch on the agent of the change, as one lot, in order."""
    identity = new_id(time.time(), chance=6)
    recipe = _trial_recipe(case, trial)
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
    return SubmissionPlan(experiment, tuple(jobs), {job.id: lot for job in jobs})


def _trial_recipe(case: Case, trial: Trial) -> Recipe:
    """Return the recipe of the one job: without its matrix, and without what would tell or time other things."""
    job = case.job
    duet = None
    if trial.way == "duet" and isinstance(case.sides, Sides):
        duet = Duet(a=case.sides.old, b=case.sides.new, pairs=trial.count)
    own = {"workload": job.workload, "measure": job.measure, "load": job.load, "limits": job.limits}
    bare = {"matrix": Matrix(), "duet": duet, "gates": (), "schedule": None, "alarms": ()}
    return case.recipe.model_copy(update=own | bare)


# In one look; the next goes on.
_AT_ONCE = 20
_DAY = timedelta(days=1)
# Of a batch at least so many must have given a number, or it has failed.
_LEAST = 4
# Once more, and no more.
_MOST_FAILURES = 2
_UNDECIDED = (ChangeState.SUSPECT, ChangeState.FOUND)
_RUNNING = (ExperimentState.PENDING, ExperimentState.RUNNING)
Pairs = list[tuple[float, float]]


class Confirmations:
    """Begin the runs that decide a suspected regression, and judge them."""

    def __init__(
        self, context: FleetContext, state: FleetState, experiments: Experiments, histories: Histories
    ) -> None:
        self._context = context
        self._state = state
        self._experiments = experiments
        self._histories = histories
        self._away: dict[str, str] = {}  # change that is to be confirmed -> the agent that it waits for
        self._pausing: dict[str, datetime] = {}  # change between two rounds -> when the next is begun

    async def attend(self) -> None:
        """Judge what is new, and see to what runs are to decide."""
        await self._histories.judge_waiting()
        await self.look_after()

    async def look_after(self) -> None:
        """Judge the batches that have ended, and begin those that are wanted."""
        for batch, state in await self._context.read(confirmations.running):
            if state is None or ExperimentState(state) not in _RUNNING:
                await self._settle_batch(batch, None if state is None else ExperimentState(state))
            elif await self._context.read(partial(self._find_undecided, change_id=batch.change_id)) is None:
                await self._stop_batch(batch)
        if self._context.settings.confirm_runs_per_day > 0:
            self._away = {change: agent for change, agent in self._away.items() if self._is_there(agent) is False}
            now = self._context.clock.now()
            self._pausing = {change: until for change, until in self._pausing.items() if until > now}
            without = (*self._away, *self._pausing)
            for change in await self._context.read(partial(confirmations.wanting, limit=_AT_ONCE, without=without)):
                await self._begin_batch(change)

    async def _stop_batch(self, batch: Batch) -> None:
        """End what runs for a change that somebody decided meanwhile: the device has better to do."""
        if batch.experiment_id is not None:
            await self._experiments.cancel(batch.experiment_id, who=Principal(name=WHO, role=Role.SUBMITTER))

    # Begun

    async def _begin_batch(self, change: Change) -> None:
        found = await self._context.read(partial(self._study, change))
        if isinstance(found, _Pause):
            self._pausing[change.id] = found.until
            return
        if isinstance(found, _Refusal):
            await self._context.write(partial(self._note_refusal, change=change, refusal=found))
            return
        case, trial, number = found
        if any(NOT_YET in step for step in change.path) and not await self._context.read(
            partial(self._has_room, trial.runs)
        ):
            return
        try:
            plan = await asyncio.to_thread(_plan_batch, case, trial, now=self._context.clock.now())
        except PronyError as exc:
            await self._context.write(partial(self._note_refusal, change=change, refusal=_Refusal(exc.message)))
            return
        batch = Batch(change.id, number, trial.way, plan.experiment.id, trial.runs, self._context.clock.now())
        told = [f"{trial.text(case)}, in {plan.experiment.id}"]
        if trial.way == "again" and isinstance(case.sides, str):
            told.insert(0, f"not run alternately: {case.sides}")
        writing = self._context.write(partial(self._keep_batch, batch=batch, plan=plan, told=told))
        is_begun = await write_plan(self._state, plan, writing)
        if is_begun:
            self._context.hook("confirming", change=change.id, experiment=plan.experiment.id, runs=trial.runs)

    def _study(self, change: Change, connection: Connection) -> tuple[Case, Trial, int] | _Refusal | _Pause:
        case = _study_change(connection, change, self._is_there)
        if isinstance(case, _Refusal):
            return case
        if not self._runs_kind(case.agent_id, case.job.workload.kind):
            # It may be another program's worker, which looks for jobs elsewhere: this one would wait for ever.
            return _Refusal(f"this server gives agent {case.agent_id} no {case.job.workload.kind} jobs")
        case = self._check_turns(case)
        batches = confirmations.of_change(connection, change.id)
        trial = _next_trial(case, batches)
        if isinstance(trial, _Refusal):
            return trial
        rounds = [one.begun_at for one in batches if one.way == trial.way == "again" and one.outcome == "open"]
        if rounds and (until := rounds[-1] + case.pause) > self._context.clock.now():
            return _Pause(until)
        return case, trial, len(batches)

    def _check_turns(self, case: Case) -> Case:
        """Return the case with turns only where the recipe of both sides is right and their folders are kept here."""
        if not isinstance(case.sides, Sides):
            return case
        try:
            jobs = expand(_trial_recipe(case, Trial("duet", PAIRS)), "turns", apart=True)
            check_scripts(jobs, self._context.store.home)
        except PronyError as exc:
            return replace(case, sides=f"{case.sides.text} cannot be run alternately: {exc.message}")
        return case

    def _is_there(self, agent_id: str) -> bool | None:
        known_agent = self._state.agents.get(agent_id)
        return None if known_agent is None else known_agent.state not in IDLE_ONLY

    def _runs_kind(self, agent_id: str, kind: str) -> bool:
        """Does an agent say that it runs such workloads? One that says nothing of kinds may."""
        known_agent = self._state.agents.get(agent_id)
        kinds = known_agent.capabilities.facts.get("kinds") if known_agent is not None else None
        return not isinstance(kinds, tuple) or kind in kinds

    def _keep_batch(self, transaction: Transaction, batch: Batch, plan: SubmissionPlan, told: Sequence[str]) -> bool:
        if not self._is_wanted(transaction, batch):
            return False
        confirmations.lock_since(transaction.connection, batch.begun_at - _DAY)
        if not self._has_room(batch.runs, transaction.connection):
            most = self._context.settings.confirm_runs_per_day
            much = f"{NOT_YET}, {batch.runs} more would exceed the limit of {most} a day"
            self._tell(transaction, batch.change_id, much)
            return False
        if not confirmations.add(transaction.connection, batch):
            return False
        store_plan(transaction, plan)
        for text in told:
            self._tell(transaction, batch.change_id, f"confirming runs: {text}")
        return True

    def _is_wanted(self, transaction: Transaction, batch: Batch) -> bool:
        """Is this still the next batch? Another server may have begun it since we looked."""
        if self._find_undecided(transaction.connection, batch.change_id) is None:
            return False
        batches = confirmations.of_change(transaction.connection, batch.change_id)
        return len(batches) == batch.number and all(one.outcome in confirmations.GOES_ON for one in batches)

    def _has_room(self, runs: int, connection: Connection) -> bool:
        """Do the runs of the last day leave room for these?"""
        spent = confirmations.runs_since(connection, self._context.clock.now() - _DAY)
        return spent + runs <= self._context.settings.confirm_runs_per_day

    def _note_refusal(self, transaction: Transaction, change: Change, refusal: _Refusal) -> None:
        if refusal.waits_for is not None:
            self._away[change.id] = refusal.waits_for
            self._tell(transaction, change.id, f"{NOT_YET}, {refusal.reason}")
            return
        number = len(confirmations.of_change(transaction.connection, change.id))
        batch = Batch(change.id, number, "none", None, 0, self._context.clock.now(), "impossible", refusal.reason)
        if self._is_wanted(transaction, batch) and confirmations.add(transaction.connection, batch):
            self._tell(transaction, change.id, f"confirming runs: none, {refusal.reason}")

    # Judged

    async def _settle_batch(self, batch: Batch, state: ExperimentState | None) -> None:
        decided = await self._context.write(partial(self._judge_batch, batch=batch, state=state))
        if decided is not None:
            self._context.hook("change", kind=decided.kind, state=decided.state.value, change=decided.id)
            await self._histories.judge_series([decided.series_id])

    def _judge_batch(self, transaction: Transaction, batch: Batch, state: ExperimentState | None) -> Change | None:
        change = self._find_undecided(transaction.connection, batch.change_id)
        if change is None:
            confirmations.end(
                transaction.connection, batch, "moot", "the change was decided or deleted in the meantime"
            )
            return None
        if state is None or state is ExperimentState.CANCELLED:
            return self._fail(transaction, batch, "deleted" if state is None else "cancelled")
        batches = confirmations.of_change(transaction.connection, batch.change_id)
        alike = [one for one in batches if one.way == batch.way and one.outcome in (None, "open")]
        if batch.way == "duet":
            return self._judge_pairs(transaction, batch, alike, change, is_last=len(alike) > 1)
        return self._judge_repeated(transaction, batch, alike, change)

    def _judge_pairs(
        self, transaction: Transaction, batch: Batch, alike: Sequence[Batch], change: Change, *, is_last: bool
    ) -> Change | None:
        pairs = [pair for one in alike for pair in _pairs(transaction.connection, one, change.metric)]
        if len(pairs) < _LEAST:
            fault = confirmations.first_failure(transaction.connection, batch.experiment_id or "")
            why = f"only {len(pairs)} complete pairs were measured" + (f": {fault}" if fault else "")
            return self._fail(transaction, batch, why)
        decided = change_decisions.confirm(transaction.connection, change.id, pairs, is_last=is_last)
        return self._end(transaction, batch, decided)

    def _judge_repeated(
        self, transaction: Transaction, batch: Batch, alike: Sequence[Batch], change: Change
    ) -> Change | None:
        runs = [run for one in alike for run in _measured_runs(transaction.connection, one, change.metric)]
        planned = sum(one.runs for one in alike)
        if len(runs) < min(_LEAST, planned):
            return self._fail(transaction, batch, f"only {len(runs)} of {planned} runs are usable")
        case = _study_change(transaction.connection, change, lambda _: True)
        if isinstance(case, _Refusal) or not case.before:
            why = case.reason if isinstance(case, _Refusal) else "the results before the change were deleted"
            return self._fail(transaction, batch, why)
        if batch.way == "once":
            before = [one.value for one in case.before]
            decided = change_decisions.confirm_once(transaction.connection, change.id, before, runs[-1].value)
            return self._end(transaction, batch, decided)
        return self._judge_rounds(transaction, batch, case, runs)

    def _judge_rounds(
        self, transaction: Transaction, batch: Batch, case: Case, runs: Sequence[change_decisions.RepeatedRun]
    ) -> Change | None:
        """Judge repetitions after the rounds that make up a look."""
        change, rounds = case.change, confirmations.of_change(transaction.connection, case.change.id)
        planned = sum(one.runs for one in rounds if one.way == "again" and one.outcome in (None, "open"))
        if planned not in (PAIRS, PAIRS + MORE):
            return self._end(transaction, batch, None)
        is_moved, told = self._canary(transaction.connection, change)
        change_decisions.note_change(transaction.connection, change.id, f"confirming runs: {told}")
        if is_moved:
            confirmations.end(transaction.connection, batch, "machine", told)
            return None
        said, decided = change_decisions.confirm_again(
            transaction.connection, change.id, case.before, runs, earlier=case.earlier, is_last=planned > PAIRS
        )  # fmt: skip
        if said not in ("machine", "restless", "unsettled"):
            return self._end(transaction, batch, decided)
        confirmations.end(transaction.connection, batch, said, "")
        self._histories.report_change(transaction, series_rows.change(transaction.connection, change.id))
        return None

    def _canary(self, connection: Connection, change: Change) -> tuple[bool, str]:
        """Say whether the machine itself changed, as far as its calibrations tell."""
        series, _ = series_rows.one(connection, change.series_id)
        found = series_rows.canary(connection, series.hardware_id)
        points = series_rows.points(connection, change.series_id)
        good = next((one.measured_at for one in points if one.job_id == change.last_good_job_id), change.measured_at)
        # An older commit may have been measured after those behind it.
        good = min(good, change.measured_at)
        sung = canary_moved(found, good, self._context.clock.now(), change.effect)
        if sung:
            return True, f"the machine changed too, {sung}"
        known = [one.taken_at for one in found if CANARY in one.figures]
        if any(at <= good for at in known) and any(at > good for at in known):
            return False, "the canary shows that the machine itself did not change"
        return False, "it is unknown whether the machine changed: calibrations before and after are missing"

    def _end(self, transaction: Transaction, batch: Batch, decided: Change | None) -> Change | None:
        confirmations.end(transaction.connection, batch, "open" if decided is None else decided.state.value, "")
        if decided is not None:
            self._histories.report_change(transaction, decided)
        return decided

    def _fail(self, transaction: Transaction, batch: Batch, why: str) -> Change | None:
        """Leave the change as it was: nothing is decided."""
        batches = confirmations.of_change(transaction.connection, batch.change_id)
        failures = 1 + sum(one.outcome == "failed" for one in batches)
        confirmations.end(transaction.connection, batch, "given up" if failures >= _MOST_FAILURES else "failed", why)
        self._tell(transaction, batch.change_id, f"confirming runs: {batch.experiment_id} failed, {why}")
        return None

    # Told

    def _tell(self, transaction: Transaction, change_id: str, told: str) -> None:
        """Add to how the change was found, and report how it stands; what was told before is not told again."""
        noted = change_decisions.note_change(transaction.connection, change_id, told)
        if noted is not None:
            self._histories.report_change(transaction, noted)

    def _find_undecided(self, connection: Connection, change_id: str) -> Change | None:
        try:
            found = series_rows.change(connection, change_id)
        except NotFoundError:
            return None
        return found if found.state in _UNDECIDED and found.kind == "regression" else None


def _pairs(connection: Connection, batch: Batch, metric: str) -> Pairs:
    """Return (old, new) of each pair of which both runs gave a number; that others disturbed them hit both alike."""
    sides: dict[tuple[str | None, int | None], float] = {}
    for job, summary in confirmations.find_measured(connection, batch.experiment_id or ""):
        estimate = summary.estimates.get(metric)
        if estimate is not None and _is_number(estimate.value):
            sides[job.side, job.pair] = estimate.value
    numbers = sorted({pair for _, pair in sides if pair is not None})
    return [(sides["a", one], sides["b", one]) for one in numbers if ("a", one) in sides and ("b", one) in sides]


def _measured_runs(connection: Connection, batch: Batch, metric: str) -> list[change_decisions.RepeatedRun]:
    """Return what each run gave that may be quoted."""
    found = []
    for _, summary in confirmations.find_measured(connection, batch.experiment_id or ""):
        estimate = summary.estimates.get(metric)
        is_quotable = verdict_on(summary, metric).grade is not Grade.VOID
        if is_quotable and estimate is not None and _is_number(estimate.value):
            found.append(change_decisions.RepeatedRun(estimate.value, summary.canary))
    return found


def _is_number(value: float) -> bool:
    return math.isfinite(value) and value > 0
