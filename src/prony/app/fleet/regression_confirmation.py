"""Regressions that a history suspects in, runs that decide them out: made once, judged when they have ended, told.

A batch and the experiment that it runs are one transaction, and the batch's key is the change with its number: of
several servers one makes it, and one that is killed did all or nothing. So is how a batch ended and what the change
is then.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from prony.analyse.history.causes import CANARY, canary_moved
from prony.app import history as steps
from prony.app.fleet import confirmation_plan, save_submission
from prony.app.fleet.context import FleetContext
from prony.app.fleet.experiments import Experiments
from prony.app.fleet.histories import NOT_YET, Histories
from prony.app.fleet.state import FleetState
from prony.app.fleet.submission import Plan
from prony.errors import NotFoundError, PronyError
from prony.model.access import Principal, Role
from prony.model.estimate import Grade, verdict_on
from prony.model.experiment import ExperimentState
from prony.model.history import Change, ChangeState
from prony.model.states import IDLE_ONLY
from prony.store import confirmations
from prony.store import series as rows
from prony.store.confirmations import Batch
from prony.store.database import Connection
from prony.store.writer import Transaction

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
            for change in await self._context.read(
                partial(confirmations.wanting, limit=_AT_ONCE, without=tuple(self._away))
            ):
                await self._begin_batch(change)

    async def _stop_batch(self, batch: Batch) -> None:
        """End what runs for a change that somebody decided meanwhile: the device has better to do."""
        if batch.experiment_id is not None:
            await self._experiments.cancel(
                batch.experiment_id, who=Principal(name=confirmation_plan.WHO, role=Role.SUBMITTER)
            )

    # Begun

    async def _begin_batch(self, change: Change) -> None:
        found = await self._context.read(partial(self._study, change))
        if isinstance(found, confirmation_plan.Refusal):
            await self._context.write(partial(self._note_refusal, change=change, refusal=found))
            return
        case, trial, number = found
        if any(NOT_YET in step for step in change.path) and not await self._context.read(
            partial(self._has_room, trial.runs)
        ):
            return
        try:
            plan = await asyncio.to_thread(confirmation_plan.plan_batch, case, trial, now=self._context.clock.now())
        except PronyError as exc:
            await self._context.write(
                partial(self._note_refusal, change=change, refusal=confirmation_plan.Refusal(exc.message))
            )
            return
        batch = Batch(change.id, number, trial.way, plan.experiment.id, trial.runs, self._context.clock.now())
        is_begun = await save_submission.write_plan(
            self._context, self._state, plan, lambda desk: self._keep_batch(desk, batch, plan, trial.text(case))
        )
        if is_begun:
            self._context.hook("confirming", change=change.id, experiment=plan.experiment.id, runs=trial.runs)

    def _study(
        self, change: Change, connection: Connection
    ) -> tuple[confirmation_plan.Case, confirmation_plan.Trial, int] | confirmation_plan.Refusal:
        case = confirmation_plan.study(connection, change, self._is_there)
        if isinstance(case, confirmation_plan.Refusal):
            return case
        if not self._runs_kind(case.agent_id, case.job.workload.kind):
            # It may be another program's worker, which looks for jobs elsewhere: this one would wait for ever.
            return confirmation_plan.Refusal(
                f"agent {case.agent_id} is lent no {case.job.workload.kind} jobs by this server"
            )
        batches = confirmations.of_change(connection, change.id)
        trial = confirmation_plan.following(case, batches)
        return trial if isinstance(trial, confirmation_plan.Refusal) else (case, trial, len(batches))

    def _is_there(self, agent_id: str) -> bool | None:
        card = self._state.agents.get(agent_id)
        return None if card is None else card.state not in IDLE_ONLY

    def _runs_kind(self, agent_id: str, kind: str) -> bool:
        """Does an agent say that it runs such workloads? One that says nothing of kinds may."""
        card = self._state.agents.get(agent_id)
        kinds = card.capabilities.facts.get("kinds") if card is not None else None
        return not isinstance(kinds, tuple) or kind in kinds

    def _keep_batch(self, desk: Transaction, batch: Batch, plan: Plan, text: str) -> bool:
        if not self._is_wanted(desk, batch):
            return False
        confirmations.lock_since(desk.connection, batch.begun_at - _DAY)
        if not self._has_room(batch.runs, desk.connection):
            most = self._context.settings.confirm_runs_per_day
            told = f"{NOT_YET}, {batch.runs} would be more than the {most} a day that are allowed"
            self._tell(desk, batch.change_id, told)
            return False
        if not confirmations.add(desk.connection, batch):
            return False
        save_submission.keep(desk, plan)
        self._tell(desk, batch.change_id, f"confirming runs: {text}, in {plan.experiment.id}")
        return True

    def _is_wanted(self, desk: Transaction, batch: Batch) -> bool:
        """Is this still the next batch? Another server may have begun it since we looked."""
        if self._find_undecided(desk.connection, batch.change_id) is None:
            return False
        batches = confirmations.of_change(desk.connection, batch.change_id)
        return len(batches) == batch.number and all(one.outcome in confirmations.GOES_ON for one in batches)

    def _has_room(self, runs: int, connection: Connection) -> bool:
        """Do the runs of the last day leave room for these?"""
        spent = confirmations.runs_since(connection, self._context.clock.now() - _DAY)
        return spent + runs <= self._context.settings.confirm_runs_per_day

    def _note_refusal(self, desk: Transaction, change: Change, refusal: confirmation_plan.Refusal) -> None:
        if refusal.waits_for is not None:
            self._away[change.id] = refusal.waits_for
            self._tell(desk, change.id, f"{NOT_YET}, {refusal.reason}")
            return
        number = len(confirmations.of_change(desk.connection, change.id))
        batch = Batch(change.id, number, "none", None, 0, self._context.clock.now(), "impossible", refusal.reason)
        if self._is_wanted(desk, batch) and confirmations.add(desk.connection, batch):
            self._tell(desk, change.id, f"confirming runs: none, {refusal.reason}")

    # Judged

    async def _settle_batch(self, batch: Batch, state: ExperimentState | None) -> None:
        decided = await self._context.write(partial(self._judge_batch, batch=batch, state=state))
        if decided is not None:
            self._context.hook("change", kind=decided.kind, state=decided.state.value, change=decided.id)
            await self._histories.judge_series([decided.series_id])

    def _judge_batch(self, desk: Transaction, batch: Batch, state: ExperimentState | None) -> Change | None:
        change = self._find_undecided(desk.connection, batch.change_id)
        if change is None:
            confirmations.end(desk.connection, batch, "moot", "the change was decided, or went, meanwhile")
            return None
        if state is None or state is ExperimentState.CANCELLED:
            return self._fail(desk, batch, "deleted" if state is None else "cancelled")
        batches = confirmations.of_change(desk.connection, batch.change_id)
        alike = [one for one in batches if one.way == batch.way and one.outcome in (None, "open")]
        is_last = len(alike) > 1
        if batch.way == "duet":
            return self._judge_pairs(desk, batch, alike, change, is_last=is_last)
        return self._judge_repeated(desk, batch, alike, change, is_last=is_last)

    def _judge_pairs(
        self, desk: Transaction, batch: Batch, alike: Sequence[Batch], change: Change, *, is_last: bool
    ) -> Change | None:
        pairs = [pair for one in alike for pair in _pairs(desk.connection, one, change.metric)]
        if len(pairs) < _LEAST:
            return self._fail(desk, batch, f"only {len(pairs)} whole pairs came of it")
        decided = steps.confirm(desk.connection, change.id, pairs, is_last=is_last)
        return self._end(desk, batch, decided)

    def _judge_repeated(
        self, desk: Transaction, batch: Batch, alike: Sequence[Batch], change: Change, *, is_last: bool
    ) -> Change | None:
        values = [value for one in alike for value in _values(desk.connection, one, change.metric)]
        if len(values) < min(_LEAST, batch.runs):
            return self._fail(desk, batch, f"only {len(values)} of {batch.runs} runs may be quoted")
        case = confirmation_plan.study(desk.connection, change, lambda _: True)
        if isinstance(case, confirmation_plan.Refusal):
            return self._fail(desk, batch, case.reason)
        if not case.before:
            return self._fail(desk, batch, "the results before are gone")
        if batch.way == "once":
            decided = steps.confirm_once(desk.connection, change.id, case.before, values[-1])
            return self._end(desk, batch, decided)
        is_moved, told = self._canary(desk.connection, change)
        steps.note(desk.connection, change.id, f"confirming runs: {told}")
        if is_moved:
            confirmations.end(desk.connection, batch, "machine", told)
            return None
        decided = steps.confirm_again(desk.connection, change.id, case.before, values, is_last=is_last)
        return self._end(desk, batch, decided)

    def _canary(self, connection: Connection, change: Change) -> tuple[bool, str]:
        """Say whether the machine itself changed, as far as its calibrations tell."""
        series, _ = rows.one(connection, change.series_id)
        found = rows.canary(connection, series.hardware_id)
        good = max((one.measured_at for one in rows.points(connection, change.series_id)
                    if one.measured_at < change.measured_at), default=change.measured_at)  # fmt: skip
        sung = canary_moved(found, good, self._context.clock.now(), change.effect)
        if sung:
            return True, f"the machine changed too, {sung}"
        known = [one.taken_at for one in found if CANARY in one.figures]
        if any(at <= good for at in known) and any(at > good for at in known):
            return False, "the canary of the machine did not move"
        return False, "no calibrations from before and after tell whether the machine itself changed"

    def _end(self, desk: Transaction, batch: Batch, decided: Change | None) -> Change | None:
        confirmations.end(desk.connection, batch, "open" if decided is None else decided.state.value, "")
        if decided is not None:
            self._histories.report_change(desk, decided)
        return decided

    def _fail(self, desk: Transaction, batch: Batch, why: str) -> Change | None:
        """Leave the change as it was: nothing is decided."""
        batches = confirmations.of_change(desk.connection, batch.change_id)
        failures = 1 + sum(one.outcome == "failed" for one in batches)
        confirmations.end(desk.connection, batch, "given up" if failures >= _MOST_FAILURES else "failed", why)
        self._tell(desk, batch.change_id, f"confirming runs: {batch.experiment_id} failed, {why}")
        return None

    # Told

    def _tell(self, desk: Transaction, change_id: str, told: str) -> None:
        """Add to how the change was found, and report how it stands; what was told before is not told again."""
        noted = steps.note(desk.connection, change_id, told)
        if noted is not None:
            self._histories.report_change(desk, noted)

    def _find_undecided(self, connection: Connection, change_id: str) -> Change | None:
        try:
            found = rows.change(connection, change_id)
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


def _values(connection: Connection, batch: Batch, metric: str) -> list[float]:
    """Return what each run gave that may be quoted."""
    measured = confirmations.find_measured(connection, batch.experiment_id or "")
    found = [one.estimates.get(metric) for _, one in measured if verdict_on(one, metric).grade is not Grade.VOID]
    return [one.value for one in found if one is not None and _is_number(one.value)]


def _is_number(value: float) -> bool:
    return math.isfinite(value) and value > 0
