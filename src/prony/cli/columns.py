"""Format objects as table rows of the terminal, with untrusted text made safe to show."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from prony.cli.output import print_columns, print_json
from prony.errors import InputError, NotFoundError
from prony.model.agent import Agent
from prony.model.alarm import Alarm, Delivery, Incident
from prony.model.cron import zone_of
from prony.model.place import Demand
from prony.model.queue import Attempt, ExperimentView, Fit, JobState, LotView, QueuedJob
from prony.model.schedule import Fire, Schedule
from prony.report.escaping import one_line

if TYPE_CHECKING:
    from prony.model.history import Change, Series
    from prony.model.queue import LotFit
    from prony.ports.use_cases import UseCases


Cells = tuple[str, ...]

EXPERIMENT = ("ID", "NAME", "STATE", "JOBS", "STARTED", "PRIORITY", "BY")
JOB = ("ID", "STATE", "AGENT", "TRY", "SINCE", "TITLE", "WHY")
ATTEMPT = ("TRY", "STATE", "AGENT", "BEGAN", "ENDED", "WHY")
AGENT = ("ID", "NAME", "STATE", "JOB", "SEEN", "DEVICE", "WHY")
LOT = ("EXPERIMENT", "NAME", "PRIORITY", "NEEDS", "WAITING", "LEASED", "FITTING", "WHY")
SCHEDULE = ("ID", "NAME", "STATE", "CRON", "ZONE", "NEXT THERE", "LAST", "FIRED", "MISSED")
FIRE = ("DUE", "FIRED", "CAUSE", "EXPERIMENT", "MISSED", "WHY")
ALARM = ("NAME", "WHEN", "SEVERITY", "ABOUT", "OPEN", "NOTIFIED", "TO")
INCIDENT = ("BEGAN", "ENDED", "TIMES", "SUBJECT", "WHAT")
DELIVERY = ("CREATED", "KIND", "STATE", "TRIES", "ADDRESS", "LAST")
FIT = ("AGENT", "STATE", "FITS", "LACKS")

_LONGEST_REASON = 100


def experiment_columns(view: ExperimentView) -> dict[str, Any]:
    """Return the keys of `prony list --json`, as far as a server knows them."""
    experiment = view.experiment.model_dump(mode="json", include={"id", "name", "state", "created_at", "ended_at"})
    counts = {f"jobs_{state}": view.counts.get(state, 0) for state in JobState}
    more = {"job_count": view.experiment.job_count, "priority": view.priority, "submitted_by": view.submitted_by}
    return experiment | counts | more | {"confirms": view.experiment.confirms}


def experiment_cells(view: ExperimentView) -> Cells:
    found = view.experiment
    done = view.counts.get(JobState.COMPLETE, 0)
    return _show_headline(
        found.id,
        found.name,
        found.state,
        f"{done}/{found.job_count}",
        f"{found.created_at:%Y-%m-%d %H:%M}",
        view.priority,
        (view.submitted_by or "-") + (f", confirms {found.confirms}" if found.confirms else ""),
    )


def job_cells(job: QueuedJob) -> Cells:
    since = job.ended_at or job.leased_at or job.created_at
    reason = job.reason or (job.failure.message if job.failure else "")
    asked = " (cancelling)" if job.cancel_asked and job.state is JobState.LEASED else ""
    return _show_headline(
        job.id, f"{job.state}{asked}", job.agent_id or "-", job.attempt, _at(since), job.title, _short(reason)
    )


def attempt_cells(attempt: Attempt) -> Cells:
    ended = _at(attempt.ended_at) if attempt.ended_at else "-"
    return _show_headline(
        attempt.number, attempt.state, attempt.agent_id, _at(attempt.leased_at), ended, attempt.reason or "-"
    )


def agent_cells(agent: Agent) -> Cells:
    device = agent.capabilities.device
    named = device.name if device else "-"
    return _show_headline(
        agent.id, agent.name, agent.state, agent.job_id or "-", _at(agent.seen_at), named, _short(agent.reason)
    )


def lot_cells(view: LotView) -> Cells:
    return _show_headline(
        view.lot.experiment_id,
        view.experiment_name,
        view.lot.priority,
        wants(view.lot.demand),
        view.waiting,
        view.leased,
        len(view.fitting),
        view.reason or "-",
    )


def _fit_cells(fit: Fit) -> Cells:
    return _show_headline(
        fit.agent_name, fit.state, "yes" if fit.fits else "no", "; ".join(str(lack) for lack in fit.lacks) or "-"
    )


def schedule_cells(schedule: Schedule) -> Cells:
    timing = schedule.timing
    return _show_headline(
        schedule.id,
        schedule.name,
        schedule.state,
        timing.cron,
        timing.zone,
        f"{schedule.next_at.astimezone(zone_of(timing.zone)):%Y-%m-%d %H:%M}" if schedule.next_at else "-",
        _at(schedule.last_at) if schedule.last_at else "-",
        schedule.fires,
        schedule.missed,
    )


def format_next(schedule: Schedule) -> str:
    """Return when it fires next, as the end of a sentence; nothing of one that is paused."""
    if schedule.next_at is None:
        return ""
    zone = schedule.timing.zone
    return f"; next at {schedule.next_at.astimezone(zone_of(zone)):%Y-%m-%d %H:%M} {zone}"


def fire_cells(fire: Fire) -> Cells:
    due = _at(fire.due_at)
    return _show_headline(
        due, _at(fire.fired_at), fire.cause, fire.experiment_id or "-", fire.missed, fire.reason or "-"
    )


def alarm_cells(alarm: Alarm) -> Cells:
    whom = ", ".join((*alarm.to, *(f"via {name}" for name in alarm.via))) or "-"
    told = _at(alarm.told_at) if alarm.told_at else "-"
    aim = [alarm.recipe or "", *(f"{key}={value}" for key, value in alarm.labels.items())]
    aim += [f"by {alarm.owner}"] if alarm.owner else []
    about = ", ".join(filter(None, aim)) or "-"
    return _show_headline(alarm.name, alarm.when, alarm.severity, about, alarm.open, told, whom)


def incident_cells(incident: Incident) -> Cells:
    ended = _at(incident.closed_at) if incident.closed_at else "-"
    return _show_headline(_at(incident.opened_at), ended, incident.count, incident.subject, _short(incident.text))


def delivery_cells(delivery: Delivery) -> Cells:
    last = delivery.tries[-1].said if delivery.tries else "-"
    tries = len(delivery.tries)
    return _show_headline(
        _at(delivery.created_at), delivery.kind, delivery.state, tries, delivery.address, _short(last)
    )


def wants(demand: Demand) -> str:
    """Return what a device must have, in one line."""
    needs = {"engine": demand.engine, "unit": demand.unit, "precision": demand.precision, "model": demand.scheme}
    needs |= {"service": demand.service, "container": "|".join(demand.containers), "launcher": demand.launcher}
    told = [f"{name}={value}" for name, value in needs.items() if value]
    told += [_condition(fact, wanted) for fact, wanted in demand.where.items()]
    return one_line(" ".join(told)) or "anything"


def _condition(fact: str, wanted: object) -> str:
    text = "|".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)
    return f"{fact}{text}" if text[:1] in "<>=!" else f"{fact}={text}"


def _at(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"


def _short(reason: str) -> str:
    text = one_line(reason)
    return (text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "...") or "-"


def _show_headline(*cells: object) -> Cells:
    return tuple(one_line(str(cell)) for cell in cells)


def show_fits(lots: Sequence[LotFit], *, runnable: bool) -> None:

    from prony.cli.output import print_columns, print_note, print_text

    for lot in lots:
        print_text(f"{lot.jobs} job{'' if lot.jobs == 1 else 's'}: {wants(lot.demand)}")
        if lot.agents:
            print_columns(FIT, [_fit_cells(fit) for fit in lot.agents])
    if not runnable:
        print_note("some jobs fit no agent: they wait until a suitable agent connects")


SERIES = ("ID", "NAME", "WHAT", "BRANCH", "MACHINE", "STATE", "RESULTS", "LAST")
CHANGES = ("ID", "KIND", "STATE", "NOTICED", "METRIC", "BY", "WHAT", "BRANCH", "MACHINE")


def one_series(bench: UseCases, text: str, branch: str) -> Series:
    """Return the one series that a person means, on a branch; empty: the default one."""
    found = bench.histories.find(text, branch=branch)
    if len(found) != 1:
        shown = ", ".join(one.id for one in found[:8])
        raise InputError(
            f"{text!r} has {len(found)} series: {shown}", hint="name the series by its id", code="ambiguous"
        )
    return found[0]


def resolve_branch(bench: UseCases, branch: str) -> str:
    """Return a branch as histories name it: empty where it is the default one."""
    from prony.ports.use_cases import iterate_pages

    if not branch:
        return ""
    found = {one.branch for one in iterate_pages(bench.histories.page) if one.is_of(branch)}
    if not found:
        raise NotFoundError(
            f"no results on branch {branch}", hint="prony history --all-branches lists all", code="no_series"
        )
    return "" if "" in found else branch


def show_progress(done: int, total: int) -> None:
    """Say how many results were read, where a person looks."""
    if sys.stderr.isatty() and (done == total or done % 20 == 0):
        sys.stderr.write(f"\r{done}/{total} results" + ("\n" if done == total else ""))


def series_cells(series: Series) -> tuple[str, ...]:
    from prony.report.number import format_observed

    state = series.state.value
    if state == "learning":
        state = f"learning {series.learned}/{series.wanted}"
    last = "-" if series.last_value is None else format_observed(series.last_value, series.unit, 4)
    branch = one_line(series.branch or series.default_branch or "-")
    return (series.id, series.name, series.title, branch, series.machine, state, str(series.runs), last)


def change_cells(change: Change) -> tuple[str, ...]:
    from prony.model.comparison import effect_text
    from prony.ports.metric_titles import metric_title

    noticed = f"{change.noticed_at:%Y-%m-%d %H:%M}"
    by = effect_text(change.effect)
    what = (change.title, one_line(change.branch) or "-", change.machine)
    return (change.id, change.kind, change.state.value, noticed, metric_title(change.metric), by, *what)


def show_options(kind: str, name: str, *, as_json: bool) -> int:
    from prony.app.abilities import options_of

    rows = options_of(kind, name)
    if as_json:
        print_json({"name": name, "options": [one.model_dump(mode="json") for one in rows]})
        return 0
    print_columns(("OPTION", "DEFAULT", "WHAT IT IS"), [(one.name, one.default, one.about) for one in rows])
    return 0
