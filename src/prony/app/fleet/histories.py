"""The histories of a fleet: judged beside the server's other work, and shown, acknowledged, held against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from prony.app import change_decisions
from prony.app import history as steps
from prony.app.fleet.alarm_engine import AlarmEngine, change_happenings
from prony.app.fleet.context import FleetContext
from prony.errors import NotFoundError, PronyError
from prony.model.access import Principal
from prony.model.history import (
    OPEN,
    Acknowledgement,
    Baseline,
    Change,
    ChangeState,
    History,
    NewBaseline,
    Series,
    SeriesState,
)
from prony.model.queue import Page
from prony.store import confirmations
from prony.store import series as rows
from prony.store.database import Connection, is_answering
from prony.store.writer import Transaction

# In one look: what is left waits for the next, and nobody waits for us.
_AT_ONCE = 50
# Said of a change whose confirming runs the budget of a day had no room for.
NOT_YET = "confirming runs: not run yet"


class Histories:
    """Judge the series that have new results, and show what changed in them."""

    def __init__(self, context: FleetContext, alarm_engine: AlarmEngine) -> None:
        self._context = context
        self._alarm_engine = alarm_engine
        self._looked_at = ""  # where the next look goes on: what cannot be judged keeps nobody waiting
        self._failures: dict[str, str] = {}  # series that could not be judged -> why

    async def judge_waiting(self) -> tuple[Change, ...]:
        """Judge some of the series that have new results; return the changes that are new, or stand otherwise now."""
        waiting = await self._context.read(partial(rows.waiting, limit=_AT_ONCE, after=self._looked_at))
        self._looked_at = waiting[-1] if len(waiting) == _AT_ONCE else ""
        return await self.judge_series(waiting)

    async def judge_series(self, series_ids: Sequence[str]) -> tuple[Change, ...]:
        """Judge these, and tell what changed; one that cannot be judged is left for a later round."""
        found: list[Change] = []
        for series_id in series_ids:
            try:
                found += await self._judge_one(series_id)
            except PronyError as exc:
                await self._context.read(is_answering)  # if the database is away, none of them can be judged
                self._report_failure(series_id, exc)
            else:
                self._failures.pop(series_id, None)
        for change in found:
            self._context.hook("change", kind=change.kind, state=change.state.value, change=change.id)
        return tuple(found)

    async def _judge_one(self, series_id: str) -> tuple[Change, ...]:
        judgement = await self._context.read(partial(steps.judge_series, series_id=series_id))
        return await self._context.write(partial(self._keep, judgement=judgement))

    def _report_failure(self, series_id: str, error: PronyError) -> None:
        """Say once why a series cannot be judged; one that was deleted meanwhile is no failure."""
        if not isinstance(error, NotFoundError) and self._failures.get(series_id) != error.message:
            self._failures[series_id] = error.message
            self._context.hook("not_judged", series=series_id, message=error.message)

    def _keep(self, transaction: Transaction, judgement: steps.Judgement) -> tuple[Change, ...]:
        before = {one.id: one for one in rows.changes(transaction.connection, judgement.told.series.id)}
        found = steps.save_judgement(transaction.connection, judgement)
        transaction.publish("series", judgement.told.series.id)
        for change in found:
            self.report_change(transaction, change)
        there = {one.id for one in judgement.told.changes}
        for change in before.values():
            if change.id not in there:  # a suspicion that came to nothing
                self.report_change(transaction, change.model_copy(update={"state": ChangeState.RESOLVED}))
        return found

    async def series(
        self,
        *,
        name: str | None = None,
        state: SeriesState | None = None,
        branch: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Series]:
        kept = None if state is None else state.value
        return await self._context.read(
            lambda connection: rows.page(connection, name=name, state=kept, branch=branch, limit=limit, cursor=cursor)
        )

    async def history(self, series_id: str, *, metric: str | None = None) -> History:
        return await self._context.read(lambda connection: steps.history(connection, series_id, metric))

    async def changes(
        self,
        *,
        state: ChangeState | None = None,
        kind: str | None = None,
        branch: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Change]:
        """Return those that are open, or those in one state, the newest first."""
        states = OPEN if state is None else (state,)
        runs_may_decide = self._context.settings.confirm_runs_per_day > 0

        def read(connection: Connection) -> Page[Change]:
            page = rows.change_page(connection, states=states, kind=kind, branch=branch, limit=limit, cursor=cursor)
            return steps.mark_doubtful(connection, page, runs_may_decide=runs_may_decide)

        return await self._context.read(read)

    async def open_changes(self) -> dict[tuple[str, str], int]:
        """Return how many changes are open, by kind and state."""
        return await self._context.read(rows.open_counts)

    async def change(self, change_id: str) -> Change:
        return await self._context.read(lambda connection: rows.change(connection, change_id))

    async def ack(self, change_id: str, words: Acknowledgement, *, who: Principal) -> Change:
        now = self._context.clock.now()

        def act(transaction: Transaction) -> Change:
            change = change_decisions.acknowledge(transaction.connection, change_id, words, who=who.name, at=now)
            self.report_change(transaction, change)
            return change

        change = await self._context.write(act)
        await self.judge_series([change.series_id])
        return change

    def report_change(self, transaction: Transaction, change: Change) -> None:
        """Have pages and alarms hear how a change stands: one that runs are to decide is suspected until they have."""
        transaction.publish("changes", "")
        if self._alarm_engine.hears("regression") or self._alarm_engine.hears("suspect"):
            is_alone = not self._context.settings.confirm_runs_per_day or _has_no_runs(transaction, change)
            for happening in change_happenings(change, self._context.clock.now(), is_alone=is_alone):
                self._alarm_engine.report(transaction, happening)

    async def baseline(self, series_id: str) -> Baseline:
        return await self._context.read(lambda connection: steps.baseline(connection, series_id))

    async def set_baseline(self, series_id: str, wanted: NewBaseline, *, who: Principal) -> Baseline:
        now = self._context.clock.now()
        return await self._context.write(
            lambda transaction: steps.set_baseline(transaction.connection, series_id, wanted, who=who.name, at=now)
        )

    async def clear_baseline(self, series_id: str, *, who: Principal) -> None:
        del who  # the trail tells it
        await self._context.write(lambda transaction: steps.clear_baseline(transaction.connection, series_id))


def _has_no_runs(transaction: Transaction, change: Change) -> bool:
    """Will no runs decide it, or not soon? Then what the history alone is sure of is told."""
    return any(NOT_YET in step for step in change.path) or confirmations.cannot_be_run(
        transaction.connection, change.id
    )
