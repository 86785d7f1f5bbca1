"""Experiments of a fleet: submitted, changed, cancelled, watched, deleted."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, insert, or_, select, update

from prony.app.fleet import submission as submissions
from prony.app.fleet.office import Notice, Office
from prony.errors import ConflictError, InputError, NotFoundError
from prony.model.access import Principal
from prony.model.agent import AgentState
from prony.model.experiment import ExperimentState
from prony.model.queue import ExperimentView, JobState, Modification, Page, QueuedJob, Submission
from prony.model.states import ENDED
from prony.store import ledger, lots, queue, tables
from prony.store.rows import experiment_of, experiment_row
from prony.store.writer import Desk

_OVER = frozenset(ExperimentState) - {ExperimentState.PENDING, ExperimentState.RUNNING}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Experiments(Office):
    """Submitted, changed, cancelled, watched, deleted."""

    async def submit(
        self, submission: Submission, *, key: str | None = None, who: Principal
    ) -> tuple[ExperimentView, bool]:
        """Store a recipe's jobs; False where the key was used before, for the same: the answer is the same too."""
        offers = {
            card.id: card.capabilities.facts
            for card in self.floor.cards.values()
            if card.state not in (AgentState.LOST, AgentState.FAULTY)
        }
        now = self.clock.now()
        made = await asyncio.to_thread(submissions.plan, submission, offers, now=now, who=who.name)
        digest = submissions.digest(submission)

        def keep(desk: Desk) -> str | None:
            known = _created(desk.connection, who.name, key, digest) if key else None
            if known is not None:
                return known
            self._keep(desk, made)
            if key:
                row = {"who": who.name, "key": key, "digest": digest}
                row |= {"experiment_id": made.experiment.id}
                desk.connection.execute(insert(tables.creation).values(row | {"created_at": now}))
            return None

        known = await self.write(keep)
        if known is None:
            self.hook("submitted", experiment=made.experiment.id, jobs=len(made.jobs), who=who.name)
        return await self.experiment(known or made.experiment.id), known is None

    def _keep(self, desk: Desk, made: submissions.Plan) -> None:
        desk.connection.execute(insert(tables.experiment).values(experiment_row(made.experiment) | {"owner": None}))
        self._queue(desk, made)

    def _queue(self, desk: Desk, made: submissions.Plan) -> None:
        queue.add(desk.connection, made.jobs, made.lots, tries=made.tries, now=made.experiment.created_at)
        sizes: dict[str, int] = {}
        for lot in made.lots.values():
            sizes[lot.id] = sizes.get(lot.id, 0) + 1
        for lot_id, count in sizes.items():
            desk.tell("lot", lot_id, count)

    async def experiment(self, experiment_id: str) -> ExperimentView:
        return await self.read(lambda connection: _views(connection, [_row(connection, experiment_id)])[0])

    async def experiments(
        self,
        *,
        state: ExperimentState | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ExperimentView]:
        table = tables.experiment
        query = select(table).order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit + 1)
        query = query if state is None else query.where(table.c.state == state.value)
        query = query if name is None else query.where(table.c.name == name)
        if cursor is not None:
            at, last = _read_cursor(cursor)
            query = query.where(or_(table.c.created_at < at, and_(table.c.created_at == at, table.c.id < last)))

        def ask(connection: Connection) -> Page[ExperimentView]:
            rows = connection.execute(query).all()
            shown = rows[:limit]
            following = _cursor(shown[-1]) if len(rows) > limit else None
            return Page(items=tuple(_views(connection, shown)), next=following)

        return await self.read(ask)

    async def modify(self, experiment_id: str, modification: Modification, *, who: Principal) -> ExperimentView:
        """Change what is given: the recipe and the labels only while nothing of it was lent."""
        view = await self.experiment(experiment_id)
        made = None
        if modification.submission is not None:
            offers = {card.id: card.capabilities.facts for card in self.floor.cards.values()}
            made = await asyncio.to_thread(
                submissions.plan,
                modification.submission,
                offers,
                now=view.experiment.created_at,
                who=view.experiment.submitted_by,
                experiment_id=experiment_id,
            )
        await self.write(lambda desk: self._modify(desk, experiment_id, modification, made))
        self.hook("modified", experiment=experiment_id, who=who.name)
        return await self.experiment(experiment_id)

    def _modify(
        self, desk: Desk, experiment_id: str, modification: Modification, made: submissions.Plan | None
    ) -> None:
        connection = desk.connection
        found = experiment_of(_row(connection, experiment_id, locked=True))
        if found.state in _OVER:
            raise ConflictError(f"experiment {experiment_id} is {found.state}", hint="only an open one can be changed")
        if (made or modification.labels is not None) and found.state is not ExperimentState.PENDING:
            hint = "cancel it and submit another; its priority can be changed while it runs"
            raise ConflictError(f"experiment {experiment_id} runs already", hint=hint)
        if made is not None:
            queue.clear(connection, experiment_id)
            found = made.experiment
            self._queue(desk, made)
        if modification.labels is not None:
            found = found.model_copy(
                update={"recipe": found.recipe.model_copy(update={"labels": dict(modification.labels)})}
            )
            _relabel(connection, experiment_id, dict(modification.labels))
        if made is not None or modification.labels is not None:
            table = tables.experiment
            connection.execute(update(table).where(table.c.id == experiment_id).values(experiment_row(found)))
        if modification.priority is not None:
            lots.prioritise(connection, experiment_id, modification.priority)
            desk.tell("priority", experiment_id, modification.priority)
        desk.tell("job", f"{experiment_id}/")

    async def delete(self, experiment_id: str, *, force: bool = False, who: Principal) -> None:
        """Remove an experiment with everything it brought; a running one only by force."""
        view = await self.experiment(experiment_id)
        if view.counts.get(JobState.LEASED) and not force:
            raise ConflictError(f"experiment {experiment_id} is running", hint="cancel it first, or delete with force")
        await asyncio.to_thread(self.store.delete_experiment, experiment_id, force=True)
        self.hook("deleted", experiment=experiment_id, who=who.name)
        for held in [one for one in self.floor.held.values() if one.experiment_id == experiment_id]:
            self.floor.release(held.lease_id)
        self.publish(experiment_id, None)

    async def cancel_experiment(self, experiment_id: str, *, who: Principal) -> ExperimentView:
        """End the jobs that wait, and ask the agents to stop those that run."""

        def act(desk: Desk) -> None:
            _row(desk.connection, experiment_id, locked=True)
            for row in queue.page(desk.connection, queue.JobFilter(experiment=experiment_id)):
                if JobState(row.state) not in ENDED:
                    self.cancel_row(desk, row)
            self.close_if_done(desk, experiment_id)

        await self.write(act)
        self.hook("cancelled", experiment=experiment_id, who=who.name)
        return await self.experiment(experiment_id)

    async def retry_experiment(self, experiment_id: str, *, who: Principal) -> ExperimentView:
        """Let every job wait again that ended without a whole result."""

        def act(desk: Desk) -> None:
            found = experiment_of(_row(desk.connection, experiment_id, locked=True))
            rows = queue.page(desk.connection, queue.JobFilter(experiment=experiment_id))
            again = [row for row in rows if JobState(row.state) in ENDED - {JobState.COMPLETE}]
            if not again:
                raise ConflictError(f"no job of {experiment_id} failed", hint="`prony rerun` runs all of it again")
            for row in again:
                self.retry_row(desk, row, tries=found.recipe.place.attempts)

        await self.write(act)
        self.hook("retried", experiment=experiment_id, who=who.name)
        return await self.experiment(experiment_id)

    async def rerun(self, experiment_id: str, *, key: str | None = None, who: Principal) -> tuple[ExperimentView, bool]:
        """Submit the recipe of an earlier experiment again, as it was after its overrides."""
        earlier = (await self.experiment(experiment_id)).experiment
        return await self.submit(submissions.for_again(earlier), key=key, who=who)

    def cancel_row(self, desk: Desk, row: Row[Any]) -> None:
        """End a job that waits; ask for the end of one that runs."""
        if row.state == JobState.LEASED:
            queue.ask_to_cancel(desk.connection, row.number)
            desk.tell("unwanted", row.lease_id)
        else:
            queue.end(desk.connection, row.number, JobState.CANCELLED, at=self.clock.now(), reason="cancelled")
        desk.tell("job", f"{row.experiment_id}/{row.job_id}")

    def retry_row(self, desk: Desk, row: Row[Any], *, tries: int) -> None:
        queue.put_back(desk.connection, row.number, tries_left=tries, not_before=0.0, avoid=None, reason="")
        over = tuple(state.value for state in _OVER)
        queue.set_state(desk.connection, row.experiment_id, ExperimentState.RUNNING.value, was=over)
        desk.tell("job", f"{row.experiment_id}/{row.job_id}")
        desk.tell("lot", row.lot_id)

    # Watching

    async def watch(self, experiment_id: str) -> AsyncIterator[Notice]:
        """Yield how the experiment stands, and then every change, until it has ended."""
        line: asyncio.Queue[Notice | None] = asyncio.Queue()
        self.watchers[experiment_id].add(line)
        try:
            view, jobs = await self.read(lambda connection: _snapshot(connection, experiment_id, self.why))
            listed = [job.model_dump(mode="json") for job in jobs]
            yield Notice("snapshot", json.dumps({"experiment": view.model_dump(mode="json"), "jobs": listed}))
            if view.experiment.state in _OVER:
                return
            while (notice := await line.get()) is not None:
                yield notice
        finally:
            self.watchers[experiment_id].discard(line)
            if not self.watchers[experiment_id]:
                del self.watchers[experiment_id]

    def why(self, lot_id: str) -> str:
        """Say why a lot's jobs wait; see the overview."""
        raise NotImplementedError

    async def show_jobs(self, experiment_id: str, job_ids: set[str]) -> None:
        """Tell those who watch how these jobs, and the experiment, stand now."""

        def ask(connection: Connection) -> tuple[ExperimentView, list[QueuedJob]]:
            rows = [queue.by_job(connection, one) for one in job_ids if one]
            view = _views(connection, [_row(connection, experiment_id)])[0]
            return view, [queue.queued_of(row, reason=self.reason_of(row)) for row in rows]

        try:
            view, jobs = await self.read(ask)
        except NotFoundError:  # deleted meanwhile
            self.publish(experiment_id, None)
            return
        for job in jobs:
            self.publish(experiment_id, Notice("job", job.model_dump_json()))
        over = view.experiment.state in _OVER
        if over or "" in job_ids:
            self.publish(experiment_id, Notice("experiment", view.model_dump_json()))
        if over:
            self.publish(experiment_id, None)

    def reason_of(self, row: Row[Any]) -> str:
        return self.why(row.lot_id) if row.state == JobState.WAITING and not row.reason else ""


def _created(connection: Connection, who: str, key: str, digest: str) -> str | None:
    """Return what was made under this key before."""
    table = tables.creation
    found = connection.execute(select(table).where(table.c.who == who, table.c.key == key)).first()
    if found is None:
        return None
    if found.digest != digest:
        raise ConflictError(
            f"the key {key!r} was used for another submission", hint="use a fresh key for each", code="key_reused"
        )
    return str(found.experiment_id)


def _row(connection: Connection, experiment_id: str, *, locked: bool = False) -> Row[Any]:
    table = tables.experiment
    query = select(table).where(table.c.id == experiment_id)
    found = connection.execute(query.with_for_update() if locked else query).first()
    if found is None:
        raise NotFoundError(f"no experiment {experiment_id!r} is stored", hint="`prony list` shows what there is")
    return found


def _views(connection: Connection, rows: Sequence[Row[Any]]) -> list[ExperimentView]:
    ids = [row.id for row in rows]
    counts = queue.counts(connection, ids)
    priorities = lots.priorities(connection, ids)
    views = []
    for row in rows:
        found = experiment_of(row)
        views.append(
            ExperimentView(
                experiment=found,
                counts=counts[row.id],
                priority=priorities.get(row.id, 0),
                submitted_by=found.submitted_by,
            )
        )
    return views


def _snapshot(connection: Connection, experiment_id: str, why: Any) -> tuple[ExperimentView, list[QueuedJob]]:
    view = _views(connection, [_row(connection, experiment_id)])[0]
    rows = queue.page(connection, queue.JobFilter(experiment=experiment_id))
    jobs = [
        queue.queued_of(row, reason=why(row.lot_id) if row.state == JobState.WAITING else "") for row in reversed(rows)
    ]
    return view, jobs


def _relabel(connection: Connection, experiment_id: str, labels: dict[str, str]) -> None:
    jobs = ledger.jobs(connection, experiment_id)
    for job in jobs:
        changed = job.model_copy(update={"labels": labels})
        table = tables.job
        connection.execute(update(table).where(table.c.id == job.id).values(document=changed.model_dump_json()))
        mark = tables.label
        connection.execute(mark.delete().where(mark.c.job_id == job.id))
        if labels:
            rows = [{"job_id": job.id, "key": key, "value": value} for key, value in labels.items()]
            connection.execute(insert(mark), rows)
    waiting = tables.queue
    connection.execute(
        update(waiting).where(waiting.c.experiment_id == experiment_id).values(labels=json.dumps(labels))
    )


def _cursor(row: Row[Any]) -> str:
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()} {row.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        at, _, last = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        when = datetime.fromisoformat(at)
    except (ValueError, binascii.Error) as exc:
        raise _bad_cursor(cursor) from exc
    if when.tzinfo is None or not _ID.fullmatch(last):
        raise _bad_cursor(cursor)
    return when, last


def _bad_cursor(cursor: str) -> InputError:
    return InputError(f"{cursor[:80]!r} is no cursor", hint="use the `next` of an earlier page", code="bad_cursor")
