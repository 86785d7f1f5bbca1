"""Cancel or retry a job or an experiment by its id, whichever the id names."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import NamedTuple

from prony.cli.output import print_json, print_text
from prony.client import Client
from prony.errors import NotFoundError
from prony.model.queue import ExperimentView, JobState, QueuedJob
from prony.report.escaping import one_line


def change_by_id(
    options: Namespace,
    done: str,
    client: Client,
    *,
    job: Callable[[str], QueuedJob],
    experiment: Callable[[str], ExperimentView],
) -> int:
    """Do it to the job of this id, or else to the experiment; `done` is how the answer is called."""
    changed: QueuedJob | ExperimentView
    try:
        changed = job(options.id)
    except NotFoundError:
        found = _meant(client, options.id)
        changed = job(found.id) if found.is_job else experiment(found.id)
    identity, noun, now = _describe_change(changed, done)
    if options.json:
        print_json({done: identity, "kind": noun, noun: changed.model_dump(mode="json")})
    else:
        print_text(one_line(f"{noun} {identity} {now}"))
    return 0


class _Meant(NamedTuple):
    id: str
    is_job: bool


def _meant(client: Client, text: str) -> _Meant:
    """Return what an abbreviation stands for."""
    try:
        return _Meant(client.experiments.find(text), is_job=False)
    except NotFoundError as exc:
        if "-" in text:
            return _Meant(client.jobs.find(text), is_job=True)
        if text == "last":
            raise
        raise NotFoundError(f"no job and no experiment {text!r}", hint=exc.hint) from exc


def _describe_change(changed: QueuedJob | ExperimentView, done: str) -> tuple[str, str, str]:
    if isinstance(changed, QueuedJob):
        running = "was asked to stop" if done == "cancelled" else "is running again"
        runs = changed.state is JobState.LEASED
        return changed.id, "job", f"{running} on {changed.agent_id}" if runs else f"is {changed.state}"
    counts = ", ".join(f"{count} {state}" for state, count in changed.counts.items() if count)
    return changed.experiment.id, "experiment", f"is {changed.experiment.state}: {counts or 'no jobs'}"
