"""What happens in a fleet, and which incidents alarms make of it, in an open transaction.

Who finds something reports it in the transaction in which it is so: `alarm_engine.report(transaction, Happening(...))`.
Which alarms there are is only in mind here; one that was removed meanwhile is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from prony.model.alarm import Alarm, Happening, Kind, Severity
from prony.model.estimate import Grade, Summary, verdict_on
from prony.model.experiment import Experiment
from prony.model.gate import GateOutcome, GateState
from prony.model.history import OPEN, Change, ChangeState
from prony.model.queue import JobState
from prony.model.schedule import Fire, Schedule
from prony.ports.metric_titles import metric_title
from prony.store import alarms as rows
from prony.store import notices
from prony.store.database import Connection
from prony.store.event_subjects import about
from prony.store.writer import Transaction

_MOST_NAMED = 3

# What is said of a benchmark. Each is an incident of its own: who hears of both is told when one becomes the other.
_KINDS_OF_CHANGE: dict[Kind, str] = {"suspect": "may be worse", "regression": "got worse"}


def _check_threshold(alarm: Alarm, recipe: str, summary: Summary, at: datetime) -> Happening | None:
    """Return that a number is beyond an alarm's threshold, or within it; None where it cannot be said."""
    condition = alarm.condition
    estimate = summary.estimates.get(condition.key)
    if estimate is None or verdict_on(summary, condition.key).grade is Grade.VOID:
        return None
    holds = condition.holds(estimate.value, estimate.low, estimate.high)
    if holds is None:
        return None
    unit = estimate.unit
    subject = f"{recipe}: {summary.title}" if summary.title else recipe
    interval = f" [{_format_value(estimate.low)}, {_format_value(estimate.high)}]" if estimate.low is not None else ""
    limit = f"{'' if holds else 'not '}{condition.sign} {condition.limit:g}"
    return Happening(
        kind="threshold",
        subject=subject,
        severity=alarm.severity,
        facts={
            "recipe": recipe,
            "job": summary.job_id,
            "metric": condition.key,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "unit": unit,
            "limit": condition.limit,
        },
        at=at,
        is_over=not holds,
        text=f"{subject}: {metric_title(condition.key)} is {_format_value(estimate.value)} {unit}{interval}, {limit}",
    )


def experiment_ended(recipe: str, experiment_id: str, counts: Mapping[JobState, int], at: datetime) -> Happening | None:
    """Return that jobs failed, or that none did; None where they did neither."""
    failed, whole = counts.get(JobState.FAILED, 0), sum(counts.values())
    if not failed and counts.get(JobState.COMPLETE, 0) < whole:
        return None
    text = (
        f"{failed} of {whole} job{'' if whole == 1 else 's'} of {recipe} failed" if failed else f"{recipe} is complete"
    )
    return Happening(
        kind="experiment_failed",
        subject=recipe,
        severity=Severity.CRITICAL if failed == whole else Severity.WARNING,
        facts={"recipe": recipe, "experiment": experiment_id, "failed": failed, "jobs": whole},
        at=at,
        is_over=not failed,
        text=f"{text} ({experiment_id})",
    )


def change_happenings(change: Change, at: datetime, *, is_alone: bool) -> list[Happening]:
    """Return that a regression is certain or suspected, and what of that is over.

    Runs made it certain; or the history did, where `is_alone` says that no runs are going to.
    """
    is_open = change.kind == "regression" and change.state in OPEN
    is_certain = change.state is ChangeState.CONFIRMED or (is_alone and change.state is ChangeState.FOUND)
    said = change.sentence or f"{change.name} got worse"
    facts: dict[str, str | int | float | bool | None] = {
        "recipe": change.name,
        "change": change.id,
        "series": change.series_id,
        "state": change.state.value,
        "metric": change.metric,
        "effect": change.effect,
        "low": change.low,
        "high": change.high,
        "p": change.p,
        "commit": change.commits[1],
        "machine": change.machine,
        "job": change.job_id,
        "experiment": change.experiment_id,
    }
    found = []
    for kind, holds in _KINDS_OF_CHANGE.items():
        is_so = is_open and is_certain is (kind == "regression")
        subject = f"{change.name}: {change.title[:120]} on {change.machine[:50]} {holds} ({change.id})"[:300]
        text = f"{said} ({change.state}, {change.id})" if is_so else f"{change.id} is {change.state}: {said}"
        severity = Severity.CRITICAL if kind == "regression" else Severity.WARNING
        found.append(
            Happening(kind=kind, subject=subject, severity=severity, facts=facts, at=at, is_over=not is_so, text=text)
        )
    return found


def gates_judged(experiment: Experiment, outcomes: Sequence[GateOutcome], at: datetime) -> Happening:
    """Return which gates of an experiment failed, or that none did; what cannot be told fails nothing."""
    failed = [one for one in outcomes if one.state is GateState.FAILED]
    told = "; ".join(f"{one.title}: {one.gate}" for one in failed[:_MOST_NAMED])
    more = f"; and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
    text = f"{len(failed)} of {len(outcomes)} gates of {experiment.name} failed: {told}{more}"
    return Happening(
        kind="gate_failed",
        subject=experiment.name,
        severity=Severity.CRITICAL,
        facts={
            "recipe": experiment.name,
            "experiment": experiment.id,
            "failed": len(failed),
            "gates": len(outcomes),
        },
        at=at,
        is_over=not failed,
        text=text if failed else f"no gate of {experiment.name} failed",
    )


def gates_state(outcomes: Sequence[GateOutcome]) -> GateState:
    """Return what became of all gates together: the worst of them decides."""
    found = {one.state for one in outcomes}
    order = (GateState.FAILED, GateState.CANNOT_TELL)
    return next((state for state in order if state in found), GateState.PASSED if found else GateState.CANNOT_TELL)


def agent_lost(agent_id: str, reason: str, at: datetime) -> Happening:
    facts: dict[str, str | int | float | bool | None] = {"agent": agent_id, "reason": reason}
    text = f"agent {agent_id} is lost: {reason}"
    return Happening(kind="agent_lost", subject=agent_id, facts=facts, at=at, text=text)


def agent_found(agent_id: str, said: str, at: datetime) -> Happening:
    facts: dict[str, str | int | float | bool | None] = {"agent": agent_id}
    text = f"agent {agent_id} {said}"
    return Happening(kind="agent_lost", subject=agent_id, facts=facts, at=at, is_over=True, text=text)


def check_missed_fires(schedule: Schedule, fire: Fire) -> Happening | None:
    """Return that times of a schedule were missed, or that one was not; None for what somebody asked for."""
    if fire.cause == "now":
        return None
    is_over = fire.cause == "due"
    text = f"schedule {schedule.name} fired in time" if is_over else f"schedule {schedule.name}: {fire.reason}"
    missed = fire.missed + (fire.experiment_id is None)
    return Happening(
        kind="schedule_missed",
        subject=schedule.name,
        facts={
            "recipe": schedule.recipe,
            "schedule": schedule.name,
            "due_at": fire.due_at.isoformat(),
            "cause": fire.cause,
            "missed": missed,
            "experiment": fire.experiment_id,
        },
        at=fire.fired_at,
        is_over=is_over,
        text=text or f"schedule {schedule.name} fired late",
    )


def _format_value(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


_LONGEST_SUBJECT = 300
# So much of what lasts is told again in one message.
_MOST_AGAIN = 200
# Which alarms hear of what: who waits for a suspicion wants to know of what is certain too.
_HEARS: dict[Kind, frozenset[Kind]] = {"suspect": frozenset({"suspect", "regression"})}


# Their subject is a recipe, of which others have runs too.
_OF_A_RECIPE: frozenset[Kind] = frozenset({"threshold", "experiment_failed", "gate_failed"})


class AlarmEngine:
    """`window_s`: what happens within it is one message."""

    def __init__(self, window_s: float) -> None:
        self.alarms: tuple[Alarm, ...] = ()
        self._window_s = window_s

    def hears(self, kind: Kind) -> bool:
        """Would anybody be told of such a thing? Where not, it need not be found out."""
        return any(kind in _heard(alarm) for alarm in self.alarms)

    def report(self, transaction: Transaction, happening: Happening) -> None:
        """Open, count or end what this is about, for every alarm that waits for it."""
        for alarm in self.alarms:
            if happening.kind in _heard(alarm) and _is_aimed_at(alarm, happening, transaction.connection):
                self._meet(transaction, alarm, _limit_subject(happening))

    def report_result(self, transaction: Transaction, recipe: str, summary: Summary, at: datetime) -> None:
        """Hold a result against the thresholds; what may not be quoted says nothing."""
        for alarm in self.alarms:
            if alarm.condition.kind == "threshold" and alarm.recipe in (None, recipe):
                found = _check_threshold(alarm, recipe, summary, at)
                if found is not None and _is_aimed_at(alarm, found, transaction.connection):
                    self._meet(transaction, alarm, _limit_subject(found))

    def remind(self, transaction: Transaction, now: datetime) -> None:
        """Gather what was told long ago and has not ended."""
        for alarm in self.alarms:
            before = now - timedelta(microseconds=alarm.again / 1000)
            for happening in rows.lasting(transaction.connection, alarm.id, before, _MOST_AGAIN):
                ready_at = now.timestamp() + self._window_s
                notice_id = notices.gather(transaction.connection, alarm.id, "again", happening, ready_at=ready_at)
                rows.note_incident(transaction.connection, alarm.id, happening.subject, notice_id)
                rows.note_all_told(transaction.connection, notice_id, now)

    def has_work(self, connection: Connection, now: datetime) -> bool:
        """Is there anything to tell now? Asked every second, so that nothing is written where there is not."""
        soonest = min(alarm.again for alarm in self.alarms)
        before = now - timedelta(microseconds=soonest / 1000)
        return notices.has_due(connection, now.timestamp()) or rows.has_lasting(connection, before)

    def _meet(self, transaction: Transaction, alarm: Alarm, happening: Happening) -> None:
        is_there, told_at = rows.told_at(transaction.connection, alarm.id)
        if not is_there:
            return
        soon = happening.at.timestamp() + self._window_s
        if happening.is_over:
            if rows.end(transaction.connection, alarm.id, happening.subject, happening.at):
                # Not before it was told that it began.
                begun = notices.gathering_until(transaction.connection, alarm.id, "firing") or 0.0
                notices.gather(transaction.connection, alarm.id, "resolved", happening, ready_at=max(soon, begun + 1))
            return
        is_new, notice_id = rows.begin(transaction.connection, alarm.id, happening)
        if is_new:
            quiet_until = told_at.timestamp() + alarm.quiet / 1e9 if told_at else 0.0
            ready_at = max(soon, quiet_until)
            notice_id = notices.gather(transaction.connection, alarm.id, "firing", happening, ready_at=ready_at)
            rows.note_incident(transaction.connection, alarm.id, happening.subject, notice_id)
        elif notice_id is not None:
            notices.count_more(transaction.connection, notice_id)


def _heard(alarm: Alarm) -> frozenset[Kind]:
    kind = alarm.condition.kind
    return _HEARS.get(kind, frozenset({kind}))


def _is_aimed_at(alarm: Alarm, happening: Happening, connection: Connection) -> bool:
    """Say whether what happened is about what the alarm is for; whose it is, is looked up only where that matters."""
    if alarm.recipe not in (None, happening.facts.get("recipe")):
        return False
    if not alarm.labels and alarm.owner is None:
        return True
    if happening.is_over and happening.kind not in _OF_A_RECIPE:
        return True  # its subject is the one that was told of, whatever labels it has by now
    found = about(connection, happening.facts)
    return alarm.labels.items() <= found.labels.items() and alarm.owner in (None, found.owner)


def _limit_subject(happening: Happening) -> Happening:
    """Return it as it can be kept and sent: no subject that is too long, no number that JSON has no word for."""
    facts = {key: str(value) if _is_odd(value) else value for key, value in happening.facts.items()}
    subject = happening.subject.replace("\0", "\ufffd")[:_LONGEST_SUBJECT]
    return happening.model_copy(update={"facts": facts, "subject": subject})


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
