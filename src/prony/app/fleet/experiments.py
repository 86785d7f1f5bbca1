"""Experiments of a fleet: submitted, changed, cancelled, tried again, deleted."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from typing import Any

from prony.app.fleet import alarms, schedules
from prony.app.fleet import submission as submissions
from prony.app.fleet.context import FleetContext
from prony.app.fleet.scripts import check_scripts
from prony.app.fleet.state import FleetState
from prony.app.fleet.transitions import Transitions
from prony.errors import ConflictError
from prony.model.access import Principal
from prony.model.experiment import Experiment, ExperimentState
from prony.model.queue import ExperimentView, JobState, Modification, Page, Submission
from prony.model.states import ENDED, OVER
from prony.store import experiments, lot_rows, queue
from prony.store.codecs import experiment_of
from prony.store.writer import Transaction

# So many jobs are changed in one transaction: nobody else should wait for thousands.
_TOGETHER = 200
_OPEN = frozenset(JobState) - ENDED


class Experiments:
    """Submit, change, cancel, try again, delete experiments."""

    def __init__(self, context: FleetContext, state: FleetState, transitions: Transitions) -> None:
        self._context = context
        self._state = state
        self._transitions = transitions

    async def submit(
        self, submission: Submission, *, key: str | None = None, who: Principal
    ) -> tuple[ExperimentView, bool]:
        """Store a recipe's jobs, and its schedule where it has one.

        False where the key was used before, for the same: the answer is the same too.
        """
        return await self._submit(submission, key=key, who=who, is_first=True)

    async def rerun(self, experiment_id: str, *, key: str | None = None, who: Principal) -> tuple[ExperimentView, bool]:
        """Submit the recipe of an earlier experiment again, as it was after its overrides."""
        earlier = (await self.get(experiment_id)).experiment
        return await self._submit(submissions.resubmission_of(earlier), key=key, who=who, earlier=earlier)

    async def _submit(
        self,
        submission: Submission,
        *,
        key: str | None,
        who: Principal,
        earlier: Experiment | None = None,
        is_first: bool = False,
    ) -> tuple[ExperimentView, bool]:
        with self._context.tracer.span("submit", {"submitted_by": who.name}) as span:
            made = await self._plan(submission, who=who, earlier=earlier)
            span.add_facts(experiment=made.experiment.id, recipe=made.experiment.name, jobs=len(made.jobs))
            keeping = self._keep_submission(
                submission, made.traced_as(span.context), key=key, who=who, is_first=is_first
            )
            # From here on it is carried out, even where whoever asked goes away.
            return await self._context.through(keeping)

    async def _plan(
        self, submission: Submission, *, who: Principal, earlier: Experiment | None
    ) -> submissions.SubmissionPlan:
        now = self._context.clock.now()
        rerun_of = earlier.id if earlier is not None else None
        read = await self._context.read_recipe(submissions.order_for(submission))
        made = await self._context.readers.in_thread(
            submissions.plan_experiment,
            read,
            submissions.list_offers(self._state),
            now=now,
            who=who.name,
            rerun_of=rerun_of,
        )
        if earlier is not None:
            made = await self._context.readers.in_thread(made.noted_as(earlier).with_pinned_images, self._context.store)
        await self._context.readers.in_thread(check_scripts, made.jobs, self._context.store.home)
        return made

    async def _keep_submission(
        self,
        submission: Submission,
        made: submissions.SubmissionPlan,
        *,
        key: str | None,
        who: Principal,
        is_first: bool,
    ) -> tuple[ExperimentView, bool]:
        now = made.experiment.created_at
        digest = submissions.digest_submission(submission, made.experiment.rerun_of)
        await self._context.readers.in_thread(made.prepare)

        def keep(transaction: Transaction) -> str | None:
            if key:
                row: dict[str, Any] = {"who": who.token_id or who.name, "key": key, "digest": digest}
                known = experiments.claim_key(
                    transaction.connection, row | {"experiment_id": made.experiment.id, "created_at": now}
                )
                if known is not None:
                    return known
            schedule_id = None
            if is_first:
                schedule_id = schedules.keep_recipe_schedule(transaction, made, submission, now=now)
                if alarms.keep_recipe_alarms(transaction, made, now=now):
                    transaction.publish("alarms", "")
            submissions.store_plan(transaction, made.of_schedule(schedule_id))
            return None

        with self._state.expect_lots(made.lots.values()):
            known = await self._context.write(keep)
        if known is not None:
            return await self.get(known), False
        self._context.hook("submitted", experiment=made.experiment.id, jobs=len(made.jobs), who=who.name)
        is_scheduled = is_first and made.experiment.recipe.schedule is not None
        return (await self.get(made.experiment.id) if is_scheduled else made.view), True

    async def get(self, experiment_id: str) -> ExperimentView:
        return await self._context.read(lambda connection: experiments.view_of(connection, experiment_id))

    async def page(
        self,
        *,
        state: ExperimentState | None = None,
        name: str | None = None,
        schedule: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ExperimentView]:
        wanted = partial(experiments.page, state=state, name=name, schedule=schedule, limit=limit, cursor=cursor)
        return await self._context.read(wanted)

    async def modify(self, experiment_id: str, modification: Modification, *, who: Principal) -> ExperimentView:
        """Change what is given: the recipe and the labels only while nothing of it was lent."""
        view = await self.get(experiment_id)
        made = None
        if modification.submission is not None:
            read = await self._context.read_recipe(submissions.order_for(modification.submission, view.experiment))
            made = await self._context.readers.in_thread(
                submissions.plan_experiment,
                read,
                submissions.list_offers(self._state),
                now=view.experiment.created_at,
                who=view.experiment.submitted_by,
                replaced=view.experiment,
            )
            await self._context.readers.in_thread(made.prepare)
        await self._context.through(
            self._context.write(lambda transaction: self._modify(transaction, experiment_id, modification, made))
        )
        self._context.hook("modified", experiment=experiment_id, who=who.name)
        return await self.get(experiment_id)

    def _modify(
        self,
        transaction: Transaction,
        experiment_id: str,
        modification: Modification,
        made: submissions.SubmissionPlan | None,
    ) -> None:
        connection = transaction.connection
        is_whole = made is not None or modification.labels is not None
        if is_whole:  # nothing of it can be lent from now on
            queue.page(connection, queue.JobFilter(experiment=experiment_id), locked=True)
        found = experiment_of(experiments.require(queue.lock_experiment(connection, experiment_id), experiment_id))
        if found.state in OVER:
            raise ConflictError(
                f"experiment {experiment_id} is {found.state}, and one that has ended cannot be changed",
                hint=f"submit another, or repeat it: prony rerun {experiment_id}",
            )
        if is_whole and found.state is not ExperimentState.PENDING:
            hint = "cancel it and submit another; its priority can be changed while it runs"
            raise ConflictError(f"experiment {experiment_id} is running already", hint=hint)
        if made is not None:
            queue.clear(connection, experiment_id)
            found = made.experiment
            submissions.enqueue(transaction, made)
        if modification.labels is not None:
            found = found.model_copy(
                update={"recipe": found.recipe.model_copy(update={"labels": dict(modification.labels)})}
            )
            experiments.relabel(connection, experiment_id, modification.labels)
        if is_whole:
            experiments.replace(connection, found)
        if modification.priority is not None:
            lot_rows.prioritise(connection, experiment_id, modification.priority)
            transaction.publish("priority", experiment_id, modification.priority)
        transaction.publish("job", f"{experiment_id}/")

    async def delete(self, experiment_id: str, *, force: bool = False, who: Principal) -> None:
        """Remove an experiment with everything it brought; a running one only by force."""
        view = await self.get(experiment_id)
        if not force:
            await self._check_ours(view, "stop it where it runs, or delete with force")
            if view.counts.get(JobState.LEASED):
                hint = "cancel it first, or delete with force"
                raise ConflictError(f"experiment {experiment_id} is running", hint=hint)
        await asyncio.to_thread(self._delete, experiment_id)
        self._context.hook("deleted", experiment=experiment_id, who=who.name)
        for held in [one for one in self._state.held.values() if one.experiment_id == experiment_id]:
            self._state.release(held.lease_id)
        await self._context.write(lambda transaction: transaction.publish("job", f"{experiment_id}/"))

    async def _check_ours(self, view: ExperimentView, hint: str) -> None:
        """Refuse to touch what somebody runs in this home without a server."""
        identity = view.experiment.id
        if view.experiment.state in OVER:
            return
        if not (await self._context.read(lambda connection: queue.counts(connection, [identity])))[identity]:
            raise ConflictError(f"experiment {identity} is not run by this server", hint=hint)

    def _delete(self, experiment_id: str) -> None:
        self._context.store.delete_experiment(experiment_id, force=True)
        shutil.rmtree(self._context.log_folder(experiment_id), ignore_errors=True)

    async def cancel(self, experiment_id: str, *, who: Principal) -> ExperimentView:
        """End the jobs that wait, a few at a time, and ask the agents to stop those that run."""
        await self._check_ours(await self.get(experiment_id), "stop it where it runs")
        while await self._context.write(partial(self._cancel_some, experiment_id)) == _TOGETHER:
            pass
        self._context.hook("cancelled", experiment=experiment_id, who=who.name)
        return await self.get(experiment_id)

    def _cancel_some(self, experiment_id: str, transaction: Transaction) -> int:
        """Cancel some; when it was fewer than many, all are: what waits and what runs are looked for at once, because a
        job goes from the one to the other at any time."""
        experiments.row_of(transaction.connection, experiment_id)
        wanted = queue.JobFilter(experiment=experiment_id, among=_OPEN, is_wanted=True)
        rows = queue.page(transaction.connection, wanted, limit=_TOGETHER, locked=True)
        for row in rows:
            self._transitions.cancel_row(transaction, row)
        self._transitions.close_if_done(transaction, experiment_id)
        return len(rows)

    async def retry(self, experiment_id: str, *, who: Principal) -> ExperimentView:
        """Let every job wait again that ended without a whole result."""

        def act(transaction: Transaction) -> None:
            found = experiment_of(experiments.row_of(transaction.connection, experiment_id))
            wanted = queue.JobFilter(experiment=experiment_id, among=ENDED - {JobState.COMPLETE})
            again = queue.page(transaction.connection, wanted, locked=True)
            if not again:
                said = f"no job of {experiment_id} failed on an agent of this server"
                raise ConflictError(said, hint=f"`prony rerun {experiment_id}` runs all of it again")
            for row in again:
                self._transitions.retry_row(transaction, row, tries=found.recipe.place.attempts)
            self._transitions.reopen(transaction, experiment_id)

        await self._context.write(act)
        self._context.hook("retried", experiment=experiment_id, who=who.name)
        return await self.get(experiment_id)
