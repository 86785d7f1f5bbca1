"""Move jobs and experiments from one state to the next, in an open transaction of the writer's thread."""

from __future__ import annotations

from typing import Any

from prony.app.fleet.alarm_engine import AlarmEngine, experiment_ended
from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState, own_device_key
from prony.dispatch.outcomes import after_loss, after_part, pause_s
from prony.errors import NotFoundError
from prony.model.experiment import ExperimentState
from prony.model.queue import JobState
from prony.model.result import Failure
from prony.model.states import OVER, experiment_outcome
from prony.store import confirmations, parts, queue, result_rows
from prony.store.database import Row
from prony.store.writer import Transaction


class Transitions:
    """What agents, leases, results, jobs and experiments change in common."""

    def __init__(self, context: FleetContext, state: FleetState, alarm_engine: AlarmEngine) -> None:
        self._context = context
        self._state = state
        self._alarm_engine = alarm_engine

    # Experiments

    def close_if_done(self, transaction: Transaction, experiment_id: str) -> None:
        """Let an experiment whose last job has ended be what follows from its jobs; a late result may change it again.

        Where two servers end the last two jobs in the same instant neither sees the other's: the next round does.
        """
        if queue.is_job_open(transaction.connection, experiment_id):
            return
        row = queue.lock_experiment(transaction.connection, experiment_id)
        if queue.is_job_open(transaction.connection, experiment_id):  # another server has just let one wait again
            return
        counts = queue.counts(transaction.connection, [experiment_id])[experiment_id]
        if not counts:  # it was deleted, or is run without a server
            return
        state, now = experiment_outcome(counts), self._context.clock.now()
        was = [before.value for before in ExperimentState if before is not state]
        if queue.set_state(transaction.connection, experiment_id, state.value, was=was, ended_at=now):
            transaction.publish("job", f"{experiment_id}/")
            # Runs that Prony made for itself are no run of the recipe: they neither begin nor end what people wait for.
            if row is None or confirmations.is_confirming(transaction.connection, experiment_id):
                return
            self._state.ended.add(experiment_id)
            if self._alarm_engine.hears("experiment_failed"):
                happening = experiment_ended(row.name, experiment_id, counts, self._context.clock.now())
                if happening is not None:
                    self._alarm_engine.report(transaction, happening)

    def reopen(self, transaction: Transaction, experiment_id: str) -> None:
        """Let an experiment that had ended run again. Locked, because another server may be about to end it."""
        queue.lock_experiment(transaction.connection, experiment_id)
        over = [state.value for state in OVER]
        if queue.set_state(transaction.connection, experiment_id, ExperimentState.RUNNING.value, was=over):
            transaction.publish("job", f"{experiment_id}/")

    # Jobs

    def cancel_row(self, transaction: Transaction, row: Row[Any]) -> None:
        """End a job that waits; ask for the end of one that runs."""
        if row.state == JobState.LEASED:
            queue.ask_to_cancel(transaction.connection, row.number)
            transaction.publish("unwanted", row.lease_id)
            for one in parts.of_job(transaction.connection, row.job_id, locked=True) if row.device_key is None else ():
                queue.ask_to_cancel(transaction.connection, one.number)
                transaction.publish("unwanted", one.lease_id or "")
        else:
            now = self._context.clock.now()
            queue.end(transaction.connection, row.number, JobState.CANCELLED, at=now, reason="cancelled")
        transaction.publish("job", f"{row.experiment_id}/{row.job_id}")

    def retry_row(self, transaction: Transaction, row: Row[Any], *, tries: int) -> None:
        """Let a job wait again; its experiment is to be reopened after it."""
        queue.put_back(transaction.connection, row.number, tries_left=tries, not_before=0.0, avoid=None, reason="")
        transaction.publish("job", f"{row.experiment_id}/{row.job_id}")
        transaction.publish("lot", row.lot_id)

    # Leases

    def put_back(self, transaction: Transaction, lease_id: str, state: str, reason: str, *, counts: bool) -> None:
        """Take a lease from its agent: the job waits again, or ends where it was cancelled or has no try left.

        `counts`: the attempt was spent; the next one waits a little, and another agent is preferred.
        """
        row = queue.of_lease(transaction.connection, lease_id, locked=True)
        if row.state != JobState.LEASED or row.lease_id != lease_id:
            return
        if row.part_of is not None:
            self.end_part(transaction, row, state, reason)
            return
        now = self._context.clock.now()
        queue.end_attempt(transaction.connection, lease_id, state, at=now, reason=reason)
        left = row.tries_left - counts
        outcome = after_loss(tries_left=left, is_cancelled=row.cancel_asked)
        if outcome is JobState.WAITING and counts:
            self.try_again(transaction, row, tries_left=left, reason=reason)
        elif outcome is JobState.WAITING:
            queue.put_back(
                transaction.connection, row.number, tries_left=left, not_before=0.0, avoid=None, reason=reason
            )
            transaction.publish("later", row.lot_id, 0)
        else:
            self._end_lost(transaction, row, outcome, reason)
            self.close_if_done(transaction, row.experiment_id)
        transaction.publish("freed", lease_id)
        transaction.publish("job", f"{row.experiment_id}/{row.job_id}")

    def take_up(self, transaction: Transaction, lease_id: str, agent_id: str) -> None:
        """Let an agent go on with a lease that ran out while it was away, where nobody else was lent the job since."""
        try:
            row = queue.of_lease(transaction.connection, lease_id, locked=True)
        except NotFoundError:  # its experiment was deleted
            return
        is_last = row.attempt == row.attempt_number and row.attempt_agent == agent_id
        if row.state != JobState.WAITING or row.attempt_state != "lost" or not is_last:
            return
        borrower = queue.Borrower(agent_id, own_device_key(agent_id, lease_id))
        queue.resume(transaction.connection, row.number, lease_id, borrower, tries_left=row.tries_left + 1)
        transaction.publish("job", f"{row.experiment_id}/{row.job_id}")

    def _end_lost(self, transaction: Transaction, row: Row[Any], state: JobState, reason: str) -> None:
        now, failure = self._context.clock.now(), None
        if state is JobState.FAILED:
            failure = Failure(code="lease_lost", message=reason, hint="`prony retry ID` tries again", whose="prony")
        told = "cancelled" if state is JobState.CANCELLED else reason
        queue.end(transaction.connection, row.number, state, at=now, reason=told, failure=failure)

    def try_again(self, transaction: Transaction, row: Row[Any], *, tries_left: int, reason: str) -> None:
        """Let a job wait whose attempt was spent: for a while, and rather for another agent."""
        tries = result_rows.experiment(transaction.connection, row.experiment_id).recipe.place.attempts
        pause = pause_s(tries - tries_left)
        due = self._context.clock.now().timestamp() + pause
        queue.put_back(
            transaction.connection, row.number, tries_left=tries_left, not_before=due, avoid=row.agent_id, reason=reason
        )
        transaction.publish("later", row.lot_id, round(pause * 1000))

    def end_part(self, transaction: Transaction, row: Row[Any], attempt_state: str, reason: str) -> None:
        """Note how one member of a gang ended. One that did not come to its end ends the others; the last one ends
        the job."""
        connection, now = transaction.connection, self._context.clock.now()
        state = after_part(attempt_state)
        lease_id = row.lease_id
        queue.end_attempt(connection, lease_id, attempt_state, at=now, reason=reason)
        queue.end(connection, row.number, state, at=now, reason=reason)
        others = [one for one in parts.of_job(connection, row.part_of, locked=True) if one.state == JobState.LEASED]
        if state is not JobState.COMPLETE:
            for one in others:
                queue.ask_to_cancel(connection, one.number)
                transaction.publish("unwanted", one.lease_id)
        transaction.publish("freed", lease_id)
        if not others:
            transaction.publish("gathered", row.part_of)
