"""The tables that the store keeps its rows in; the migrations make them, and a test holds the two together.

Documents are text and not JSON columns: a noun may hold NaN or infinity, which SQL's JSON refuses.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

from prony.errors import InputError


class Instant(TypeDecorator[datetime]):
    """An aware UTC instant; SQLite keeps no zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise InputError(f"the instant {value} has no time zone", hint="use aware UTC instants")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None or value.tzinfo is not None:
            return value
        return value.replace(tzinfo=UTC)


metadata = MetaData()

experiment = Table(
    "experiment",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("job_count", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Column("owner", Text),
    Index("experiment_by_age", "created_at", "id"),
    Index("experiment_by_state", "state"),
)

job = Table(
    "job",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Index("job_by_experiment", "experiment_id", "position"),
)

result = Table(
    "result",
    metadata,
    Column("job_id", ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("state", String(16), nullable=False),
    # True for the one attempt of a job that counts: the best state, and of equals the first.
    Column("stands", Boolean, nullable=False),
    Column("ended_at", Instant),
    Column("hardware_id", String(128), nullable=False),
    Column("software_id", String(128), nullable=False),
    # Relative to the home's results, with forward slashes, so that a home can be moved.
    Column("folder", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("grade", String(16), nullable=False),
    Column("headline_metric", String(64)),
    Column("headline_value", Float(53)),
    Column("headline_low", Float(53)),
    Column("headline_high", Float(53)),
    Column("headline_unit", String(16)),
    Index("result_by_experiment", "experiment_id", "stands"),
)

calibration = Table(
    "calibration",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("hardware_id", String(128), nullable=False),
    Column("software_id", String(128), nullable=False),
    Column("taken_at", Instant, nullable=False),
    Column("document", Text, nullable=False),
    Index("calibration_by_hardware", "hardware_id", "taken_at"),
)

# Experiments whose rows are gone and whose folders may not be yet: written with the delete, so that a crash between
# the two is finished by the next open.
deletion = Table("deletion", metadata, Column("experiment_id", String(128), primary_key=True))

# What a server hands out. A job that runs without one has no row here.

Number = BigInteger().with_variant(Integer, "sqlite")


def _experiment_id() -> Column[str]:
    return Column("experiment_id", String(128), ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False)


# The jobs of one experiment that want the same kind of device.
lot = Table(
    "lot",
    metadata,
    Column("id", String(128), primary_key=True),
    _experiment_id(),
    Column("demand_id", String(64), nullable=False),
    Column("demand", Text, nullable=False),
    Column("agent_id", String(128)),
    Column("priority", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Index("lot_by_experiment", "experiment_id"),
)

# `number` is the order of arrival, by which lists are cut into pages. `not_before` is in seconds of the epoch.
# `beat` grows while the lease is renewed: who looks twice knows whether it lives, whatever the clocks say.
queue = Table(
    "queue",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("job_id", String(128), ForeignKey("job.id", ondelete="CASCADE"), nullable=False, unique=True),
    _experiment_id(),
    Column("lot_id", String(128), ForeignKey("lot.id", ondelete="CASCADE"), nullable=False),
    Column("title", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("tries_left", Integer, nullable=False),
    Column("agent_id", String(128)),
    Column("device_key", String(128)),
    Column("lease_id", String(128)),
    Column("beat", BigInteger, nullable=False),
    Column("avoid", String(128)),
    Column("cancel_asked", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("leased_at", Instant),
    Column("ended_at", Instant),
    Column("not_before", Float(53), nullable=False),
    Column("reason", Text, nullable=False),
    Column("failure", Text),
    Column("labels", Text, nullable=False),
    # Of one agent's part of a load that several send: the job that it is of, and which part.
    Column("part_of", String(128)),
    Column("part", Integer),
    # Not a partial one of those that wait: SQLite would rather go through all that wait, of every lot.
    Index("queue_by_lot", "lot_id", "state", "number"),
    Index("queue_by_lease", "lease_id"),
    Index("queue_by_experiment", "experiment_id", "number"),
    Index("queue_by_state", "state", "number"),
    Index("queue_by_agent", "agent_id", "number"),
    Index("queue_by_end", "ended_at"),
)  # fmt: skip

# One lease of a job each; kept when the lease is over.
attempt = Table(
    "attempt",
    metadata,
    Column("job_id", String(128), ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("lease_id", String(128), nullable=False, unique=True),
    Column("agent_id", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("leased_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("reason", Text, nullable=False),
    Index("attempt_by_agent", "agent_id", "leased_at"),
)

# How the job of a lease fares at a target; written by stand-in agents, and kept when the lease is over.
placement = Table(
    "placement",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("lease_id", String(128), ForeignKey("attempt.lease_id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("target", String(32), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("document", Text, nullable=False),
    Index("placement_by_target", "target", "number"),
)

# `number` is the job's in the queue, so that the jobs of a label are found in the order of their list.
label = Table(
    "label",
    metadata,
    Column("job_id", String(128), ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(128), primary_key=True),
    Column("value", String(128), nullable=False),
    Column("number", Number, nullable=False),
    Index("label_by_value", "key", "value", "number"),
)

# `state` is what must outlive a restart (active, faulty, lost, draining, stopped); busy and cleanup follow from leases.
# `beat` grows with its signs of life, as that of a lease does.
agent = Table(
    "agent",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("device_key", String(128), nullable=False),
    Column("incarnation", String(128), nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("strikes", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("document", Text, nullable=False),
)

# A creation that was asked for under a key is answered with what the first one made.
creation = Table(
    "creation",
    metadata,
    Column("who", String(128), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("experiment_id", String(128), nullable=False),
    Column("created_at", Instant, nullable=False),
)

# Secrets are kept as hashes only.
token = Table(
    "token",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("role", String(16), nullable=False),
    Column("once", Boolean, nullable=False),
    Column("agent_id", String(128)),
    Column("hash", String(64), nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("last_used_at", Instant),
    Column("revoked_at", Instant),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("who", String(128), nullable=False),
    Column("role", String(16), nullable=False),
    Column("action", String(64), nullable=False),
    Column("target", Text, nullable=False),
    Column("address", String(64), nullable=False),
    Column("status", Integer, nullable=False),
)

# `next_at` is the due instant that has not fired yet; None while it is paused.
schedule = Table(
    "schedule",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("recipe", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("timing", Text, nullable=False),
    Column("next_at", Instant),
    Column("created_at", Instant, nullable=False),
    Column("created_by", String(128), nullable=False),
    Column("submission", Text, nullable=False),
    Index("schedule_by_next", "next_at"),
)

# Its key is why a due instant fires once, however many servers see it come: the row is written in the transaction that
# makes the experiment.
fire = Table(
    "fire",
    metadata,
    Column("schedule_id", String(128), ForeignKey("schedule.id", ondelete="CASCADE"), primary_key=True),
    Column("due_at", Instant, primary_key=True),
    Column("fired_at", Instant, nullable=False),
    Column("cause", String(16), nullable=False),
    Column("experiment_id", String(128)),
    Column("missed", Integer, nullable=False),
    Column("reason", Text, nullable=False),
)

# Which experiments are of a schedule; it outlives the schedule, as they do.
scheduled = Table(
    "scheduled",
    metadata,
    Column("experiment_id", String(128), ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True),
    Column("schedule_id", String(128), nullable=False),
    Index("scheduled_by_schedule", "schedule_id"),
)

# `document` is what may be shown. `addresses` (JSON) and `secret` are as they are used, and are never shown.
alarm = Table(
    "alarm",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(255), nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    Column("told_at", Instant),
    Column("document", Text, nullable=False),
    Column("addresses", Text, nullable=False),
    Column("secret", String(128), nullable=False),
)


def _alarm_id() -> Column[str]:
    return Column("alarm_id", String(128), ForeignKey("alarm.id", ondelete="CASCADE"), nullable=False)


# One that is open is the only one of its alarm and subject.
incident = Table(
    "incident",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    _alarm_id(),
    Column("subject", String(300), nullable=False),
    Column("opened_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("closed_at", Instant),
    Column("told_at", Instant),
    Column("count", Integer, nullable=False),
    Column("notice_id", String(128)),
    Column("document", Text, nullable=False),
    Index("incident_by_alarm", "alarm_id", "id"),
    Index("incident_by_notice", "notice_id"),
)

# What an alarm gathers until it is ready, in seconds of the epoch, and is then told as one message.
notice = Table(
    "notice",
    metadata,
    Column("id", String(128), primary_key=True),
    _alarm_id(),
    Column("kind", String(16), nullable=False),
    Column("ready_at", Float(53)),
    Column("created_at", Instant, nullable=False),
    Column("count", Integer, nullable=False),
    Column("document", Text, nullable=False),
)

# One message to one address: that of number `place` of the alarm `source_id`. Until `not_before`, in seconds of the
# epoch, nobody else sends it; a server that has not told by then what came of it is gone.
delivery = Table(
    "delivery",
    metadata,
    Column("id", String(128), primary_key=True),
    _alarm_id(),
    Column("notice_id", String(128), ForeignKey("notice.id", ondelete="CASCADE"), nullable=False),
    Column("source_id", String(128), nullable=False),
    Column("place", Integer, nullable=False),
    Column("address", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("not_before", Float(53)),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("attempts", Text, nullable=False),
    Index("delivery_by_alarm", "alarm_id", "created_at", "id"),
    Index("delivery_by_notice", "notice_id"),
    Index("delivery_open", "not_before"),
)


# Labels are lines of `key=value`, each between line ends. `gates` is None where nobody judged any.
listed = Table(
    "listed",
    metadata,
    Column("experiment_id", String(128), ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("labels", Text, nullable=False),
    Column("submitted_by", String(128), nullable=False),
    Column("gates", String(16)),
    Column("gates_text", Text),
    Index("listed_by_gates", "gates"),
)

# What was sent to another program that keeps results. `ended_at` is the end of the experiment as it was sent, None
# where it was not taken yet; `not_before` is in seconds of the epoch.
exported = Table(
    "exported",
    metadata,
    Column("experiment_id", String(128), ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True),
    Column("destination", String(128), primary_key=True),
    Column("ended_at", Instant),
    Column("tries", Integer, nullable=False),
    Column("not_before", Float(53), nullable=False),
    Column("error", Text, nullable=False),
)
