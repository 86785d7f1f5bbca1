"""Rows of experiments, jobs and results, and the rules for adding, replacing and ending them.

SQLite lets one writer in at a time. On PostgreSQL others write meanwhile: whoever reads a row in order to change it, or
what hangs on it, locks it first: a place in the queue before the experiment, and that before its jobs, so that no two
wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any

from sqlalchemy import Connection, Insert, Row, Table, and_, bindparam, func, select, update

from prony.errors import ConflictError, InputError, NotFoundError
from prony.model.estimate import Summary
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.result import ResultState
from prony.model.states import EXPERIMENT, check_transition, outcome_of_results
from prony.store import history_tables, tables
from prony.store import tables as listing_tables
from prony.store.codecs import Values, experiment_of, experiment_row, job_row, listed_row
from prony.store.home import safe_id
from prony.store.process_owner import this_process

_LIST_HINT = "`prony list` shows what there is"
# Of a job's attempts the best stands.
_RANK = {ResultState.COMPLETE: 0, ResultState.PARTIAL: 1, ResultState.FAILED: 2}


def add(connection: Connection, table: Table, values: Values, noun: str, **once: Any) -> bool:
    """Add a row; False when the very same is there, a ConflictError when another one has its id.

    `once` are columns that are set now and say nothing about being the same.
    """
    safe_id(values["id"])
    if insert_new(connection, table, values | once):
        return True
    found = connection.execute(select(table).where(table.c.id == values["id"])).first()
    if found is None or any(found._mapping[name] != value for name, value in values.items()):
        raise ConflictError(f"another {noun} {values['id']} is stored already", hint="delete that one first")
    return False


def insert_new(connection: Connection, table: Table, values: Values) -> bool:
    """Add a row unless one has its key; of several who add it at the same time, one is told that it did."""
    _check_lengths(table, values)
    return connection.execute(_inserting(table, connection.dialect.name), values).first() is not None


@cache
def _inserting(table: Table, dialect: str) -> Insert:
    """Return the statement without values: to build it takes longer than to run it."""
    inserting = import_module(f"sqlalchemy.dialects.{dialect}").insert(table)  # what is not used is not loaded
    statement: Insert = inserting.on_conflict_do_nothing().returning(*table.primary_key.columns)
    return statement


@cache
def _replacing(table: Table, dialect: str) -> Insert:
    """The same where the newer row takes the older one's place."""
    adding, keys = import_module(f"sqlalchemy.dialects.{dialect}").insert(table), table.primary_key.columns
    fresh = {column.name: adding.excluded[column.name] for column in table.columns if column.name not in keys}
    statement: Insert = adding.on_conflict_do_update(index_elements=list(keys), set_=fresh)
    return statement


def _check_lengths(table: Table, values: Values) -> None:
    """Refuse what only SQLite would keep, so that what one database takes the other takes as well."""
    for name, value in values.items():
        most = getattr(table.c[name].type, "length", None)
        if most is not None and value is not None and len(value) > most:
            raise InputError(f"{table.name}.{name} has {len(value)} characters", hint=f"at most {most} are allowed")


def add_experiment(connection: Connection, experiment: Experiment) -> None:
    """Keep a new experiment; a running one is owned by this process."""
    running = experiment.state is ExperimentState.RUNNING
    owner = this_process().text() if running else None
    # One that is there already has its line too, and may be deleted at this moment.
    if add(connection, tables.experiment, experiment_row(experiment), "experiment", owner=owner):
        insert_new(connection, listing_tables.listed, listed_row(experiment))
    # Looked at when the row is there: who deletes one of the same id is then either seen here, or waits for us.
    leaving = select(tables.deletion).where(tables.deletion.c.experiment_id == experiment.id)
    if connection.execute(leaving).first():
        # Its folder is about to be removed; a new one in the same place would go with it.
        raise ConflictError(f"experiment {experiment.id} is still being deleted", hint="try again in a moment")


def add_jobs(connection: Connection, jobs: Sequence[Job]) -> None:
    """Keep jobs after those that their experiment has; one that is there already keeps its place."""
    places: dict[str, int] = {}
    for job in jobs:
        if job.experiment_id not in places:
            experiment(connection, job.experiment_id, change=True)
            count = select(func.count()).where(tables.job.c.experiment_id == job.experiment_id)
            places[job.experiment_id] = connection.execute(count).scalar_one()
        if add(connection, tables.job, job_row(job), "job", position=places[job.experiment_id]):
            places[job.experiment_id] += 1


def experiment(connection: Connection, experiment_id: str, *, change: bool = False) -> Experiment:
    """Return one, or say that there is none; who means to `change` it waits until nobody else does."""
    query = select(tables.experiment).where(tables.experiment.c.id == experiment_id)
    row = connection.execute(query.with_for_update(key_share=True) if change else query).first()
    if row is None:
        raise NotFoundError(f"no experiment {experiment_id!r}", hint=_LIST_HINT)
    return experiment_of(row)


def hold_queue(connection: Connection, experiment_id: str) -> None:
    """Wait for those who lend or end jobs of the experiment at this moment, and keep others off until the commit."""
    if connection.dialect.name == "postgresql":
        table = tables.queue
        held = select(table.c.number).where(table.c.experiment_id == experiment_id).order_by(table.c.number)
        connection.execute(held.with_for_update())


def resolve(connection: Connection, text: str) -> str:
    """Return the one id that a person means by a full id, the beginning of one, or `last`."""
    table = tables.experiment
    if text == "last":
        newest = select(table.c.id).order_by(table.c.created_at.desc(), table.c.id.desc()).limit(1)
        found = connection.execute(newest).scalar()
        if found is None:
            raise NotFoundError("there is no experiment yet", hint="`prony run RECIPE` makes one")
        return str(found)
    query = select(table.c.id).where(table.c.id.startswith(text, autoescape=True)).order_by(table.c.id)
    # SQLite's LIKE passes over case, ids do not.
    matches = [match for match in connection.execute(query).scalars() if text and match.startswith(text)]
    if text in matches or len(matches) == 1:
        return text if text in matches else str(matches[0])
    if not matches:
        raise NotFoundError(f"no experiment {text!r}", hint=_LIST_HINT)
    shown = ", ".join(matches[:8]) + (", ..." if len(matches) > 8 else "")
    raise InputError(f"{text!r} matches {len(matches)} ids: {shown}", hint="type more of the id", code="ambiguous")


def jobs(connection: Connection, experiment_id: str) -> tuple[Job, ...]:
    table = tables.job
    query = select(table.c.document).where(table.c.experiment_id == experiment_id)
    rows = connection.execute(query.order_by(table.c.position, table.c.id))
    # A part of a load is a job while the load is lent, and nobody else's concern.
    return tuple(job for text in rows.scalars() if (job := Job.read_json(text)).part is None)


def require_job(connection: Connection, job_id: str) -> str:
    """Return the id of a job's experiment, or say that there is no such job."""
    found = connection.execute(select(tables.job.c.experiment_id).where(tables.job.c.id == job_id)).scalar()
    if found is None:
        raise NotFoundError(f"no job {job_id!r} is stored", hint="`prony show ID` lists an experiment's jobs")
    return str(found)


def end_experiment(
    connection: Connection, experiment_id: str, state: ExperimentState, ended_at: datetime | None
) -> Experiment:
    """Move an experiment on, or refuse; to where it is already changes nothing."""
    found = experiment(connection, experiment_id, change=True)
    if found.state is state:
        return found
    check_transition(EXPERIMENT, f"experiment {experiment_id}", found.state, state)
    table = tables.experiment
    ending = update(table).where(table.c.id == experiment_id)
    connection.execute(ending.values(state=state.value, ended_at=ended_at, owner=None))
    return found.model_copy(update={"state": state, "ended_at": ended_at})


def end_orphans(connection: Connection, is_dead: Callable[[str], bool]) -> tuple[Experiment, ...]:
    """End every running experiment whose owner is dead; when it ended is when its last result did, or unknown."""
    table = tables.experiment
    query = select(table.c.id, table.c.owner).where(table.c.state == ExperimentState.RUNNING.value)
    ended: list[Experiment] = []
    rows = connection.execute(query.order_by(table.c.created_at).with_for_update(key_share=True)).all()
    for experiment_id, text in rows:
        if text is not None and is_dead(text):
            state, ended_at = _left_behind(connection, experiment_id)
            ended.append(end_experiment(connection, experiment_id, state, ended_at))
    return tuple(ended)


_ATTEMPTS = select(tables.result.c.attempt, tables.result.c.state).where(tables.result.c.job_id == bindparam("of"))
_KEEP_EXPERIMENT = (
    select(tables.experiment.c.id)
    .where(tables.experiment.c.id == bindparam("of"))
    .with_for_update(read=True, key_share=True)
)
_KEEP_JOB = select(tables.job.c.experiment_id).where(tables.job.c.id == bindparam("of")).with_for_update(key_share=True)


def add_result(connection: Connection, row: Values, *, attempt: int, folder: str) -> bool:
    """Accept one attempt once, and let the best stand; False when it was accepted before."""
    _claim_job(connection, row["job_id"], row["experiment_id"])
    return add_attempt(connection, row, attempt=attempt, folder=folder)


def keep_experiment(connection: Connection, experiment_id: str) -> None:
    """Let nobody delete an experiment before this transaction ends; SQLite has one who writes anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_KEEP_EXPERIMENT, {"of": experiment_id})


def add_attempt(connection: Connection, row: Values, *, attempt: int, folder: str, is_first: bool = False) -> bool:
    """The same of a job that nobody else can add to now; `is_first`: there can be no other attempt's."""
    table, job_id, state = tables.result, row["job_id"], ResultState(row["state"])
    known = () if is_first else connection.execute(_ATTEMPTS, {"of": job_id}).all()
    if any(other.attempt == attempt for other in known):
        return False
    stands = all(_RANK[state] < _RANK[ResultState(other.state)] for other in known)
    if known and stands:
        connection.execute(update(table).where(table.c.job_id == job_id).values(stands=False))
    own = {name: value for name, value in row.items() if name != "history"}
    is_new = insert_new(connection, table, own | {"attempt": attempt, "folder": folder, "stands": stands})
    if is_new and stands and row["history"] is not None:
        keep_point(connection, *row["history"])
    return is_new


_RECORDED = select(tables.result.c.job_id).where(
    tables.result.c.job_id == bindparam("job"), tables.result.c.attempt == bindparam("number")
)


def has_attempt(connection: Connection, job_id: str, attempt: int) -> bool:
    """Is the result of this attempt recorded?"""
    return connection.execute(_RECORDED, {"job": job_id, "number": attempt}).first() is not None


def replace_summaries(connection: Connection, summaries: Mapping[str, Summary]) -> None:
    """Keep other summaries of the results that stand, by job."""
    table = tables.result
    for job_id, summary in summaries.items():
        query = update(table).where(table.c.job_id == job_id, table.c.stands)
        connection.execute(query.values(summary=summary.model_dump_json()))


def standing_results(connection: Connection) -> list[Row[Any]]:
    """Return folder and summary of every result that stands for its job."""
    table = tables.result
    query = select(table.c.folder, table.c.summary).where(table.c.stands).order_by(table.c.job_id)
    return list(connection.execute(query))


def keep_point(connection: Connection, series: Values, point: Values) -> None:
    """Keep a result in its history, in place of another attempt's; it waits to be judged."""
    insert_new(connection, history_tables.series, series)
    connection.execute(_replacing(history_tables.point, connection.dialect.name), point)


def _claim_job(connection: Connection, job_id: str, experiment_id: str) -> None:
    """Let nobody else add a result of this job, nor delete its experiment, before this transaction ends."""
    keep_experiment(connection, experiment_id)
    found = connection.execute(_KEEP_JOB, {"of": job_id}).scalar()
    if found != experiment_id:
        require_job(connection, job_id)
        raise ConflictError(
            f"job {job_id} is stored under another experiment than {experiment_id}",
            hint="check that the result was sent to the right server",
        )


def _left_behind(connection: Connection, experiment_id: str) -> tuple[ExperimentState, datetime | None]:
    """Judge an abandoned experiment by what it recorded."""
    table = tables.result
    query = select(table.c.state, table.c.ended_at).where(and_(table.c.experiment_id == experiment_id, table.c.stands))
    rows = connection.execute(query).all()
    expected = experiment(connection, experiment_id).job_count
    ended_at = max((row.ended_at for row in rows if row.ended_at), default=None)
    return outcome_of_results([ResultState(row.state) for row in rows], expected=expected), ended_at
