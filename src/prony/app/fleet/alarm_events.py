"""What a fleet sees in, happenings that alarms may wait for out: each with its sentence, and whether it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from prony.model.alarm import Alarm, Happening, Severity
from prony.model.condition import Kind
from prony.model.estimate import Grade, Summary, verdict_on
from prony.model.experiment import Experiment
from prony.model.gate_outcome import GateOutcome, GateState
from prony.model.history import OPEN, Change, ChangeState
from prony.model.queue import JobState
from prony.model.schedule import Fire, Schedule

_MOST_NAMED = 3

# What is said of a benchmark. Each is an incident of its own: who hears of both is told when one becomes the other.
_KINDS_OF_CHANGE: dict[Kind, str] = {"suspect": "may be worse", "regression": "got worse"}


def check_threshold(alarm: Alarm, recipe: str, summary: Summary, at: datetime) -> Happening | None:
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
        text=f"{subject}: {condition.key} is {_format_value(estimate.value)} {unit}{interval}, {limit}",
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
        text=text if failed else f"every gate of {experiment.name} holds",
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
