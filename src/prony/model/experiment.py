"""One submission of a recipe, and what became of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from prony.model.base import Noun
from prony.model.git import Git
from prony.model.recipe import Recipe


class ExperimentState(StrEnum):
    """How far an experiment is, or how it ended."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Experiment(Noun):
    """One run of a recipe: its jobs were made when it began, and `recipe_text` is what a person wrote."""

    id: str
    name: str
    recipe: Recipe
    recipe_text: str = ""
    state: ExperimentState = ExperimentState.RUNNING
    created_at: datetime
    ended_at: datetime | None = None
    job_count: int
    rerun_of: str | None = None
    # The folder that relative paths in the recipe are relative to.
    base: str = ""
    # Whose token submitted it to a server.
    submitted_by: str = ""
    # The schedule that it is of.
    schedule_id: str | None = None
    # The change in a history that it is to confirm; its results are in no history themselves.
    confirms: str | None = None
    # Whose format the recipe's text is in, where it is not Prony's own.
    dialect: str = ""
    # What of that text was not honoured, each with its line.
    notes: tuple[str, ...] = ()
    # The repository that the recipe lies in, as it was when the recipe was submitted.
    git: Git | None = None
