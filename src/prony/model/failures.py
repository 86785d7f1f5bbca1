"""Failures of many jobs, grouped by their cause."""

from __future__ import annotations

from datetime import datetime

from prony.model.base import Noun


class JobFailure(Noun):
    """One attempt that failed. `agent` is empty where the job ran without a server."""

    job_id: str
    experiment_id: str
    recipe: str
    agent: str
    at: datetime
    code: str
    message: str
    hint: str = ""
    whose: str = ""


class FailureGroup(Noun):
    """Failures of one cause. `message`, `hint` and the ids are those of the newest one.

    `agents`, `recipes` and `days` say how many of them were where and when; a day is one of UTC.
    """

    code: str
    whose: str
    message: str
    hint: str
    failures: int
    jobs: int
    agents: dict[str, int]
    recipes: dict[str, int]
    days: dict[str, int]
    first_at: datetime
    last_at: datetime
    newest_job: str
    newest_experiment: str


class FailureReport(Noun):
    """Causes with most failures first. `is_cut`: there were more failures than were looked at, older ones."""

    since: datetime
    failures: int
    jobs: int
    agents: int
    groups: tuple[FailureGroup, ...]
    is_cut: bool = False
