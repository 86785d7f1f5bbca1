"""Find out whose an event is: labels and owner of the experiment, job, agent or schedule it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from prony.model.agent import Capabilities
from prony.store import tables
from prony.store.codecs import read_labels
from prony.store.tables import listed

# The label by which an agent says whose it is: nobody submits an agent.
_OWNER = "owner"


@dataclass(frozen=True)
class EventSubject:
    """`owner` is who submitted the experiment, who made the schedule, or the agent's label `owner`; may be empty."""

    labels: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""


def about(connection: Connection, facts: Mapping[str, object]) -> EventSubject:
    """Return it by what the facts name; what was deleted meanwhile has no labels and no owner."""
    agent, schedule, experiment, job = (facts.get(name) for name in ("agent", "schedule", "experiment", "job"))
    if isinstance(agent, str):
        return _of_agent(connection, agent)
    if isinstance(schedule, str):
        return _of_schedule(connection, schedule)
    if isinstance(job, str):
        return _of_job(connection, job)
    return _of_experiment(connection, experiment) if isinstance(experiment, str) else EventSubject()


def _of_agent(connection: Connection, agent_id: str) -> EventSubject:
    document = connection.execute(select(tables.agent.c.document).where(tables.agent.c.id == agent_id)).scalar()
    labels = Capabilities.read_json(document).labels if document is not None else {}
    return EventSubject(labels, labels.get(_OWNER, ""))


def _of_schedule(connection: Connection, name: str) -> EventSubject:
    """Its labels are those of the last experiment that it made."""
    table, made, experiment = tables.schedule, tables.scheduled, tables.experiment
    row = connection.execute(select(table.c.id, table.c.created_by).where(table.c.name == name)).first()
    if row is None:
        return EventSubject()
    newest = select(experiment.c.id).join(made, made.c.experiment_id == experiment.c.id)
    newest = newest.where(made.c.schedule_id == row.id).order_by(experiment.c.created_at.desc()).limit(1)
    last = connection.execute(newest).scalar()
    labels = _of_experiment(connection, last).labels if last is not None else {}
    return EventSubject(labels, row.created_by)


def _of_job(connection: Connection, job_id: str) -> EventSubject:
    """A matrix may give each job labels of its own."""
    table = tables.job
    row = connection.execute(select(table.c.experiment_id, table.c.document).where(table.c.id == job_id)).first()
    if row is None:
        return EventSubject()
    whole = _of_experiment(connection, row.experiment_id)
    return EventSubject({**whole.labels, **json.loads(row.document).get("labels", {})}, whole.owner)


def _of_experiment(connection: Connection, experiment_id: str) -> EventSubject:
    row = connection.execute(select(listed).where(listed.c.experiment_id == experiment_id)).first()
    return EventSubject() if row is None else EventSubject(read_labels(row.labels), row.submitted_by)
