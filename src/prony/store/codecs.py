"""Convert nouns to database rows and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.errors import InputError
from prony.model.calibration import Calibration
from prony.model.estimate import Summary, headline_of
from prony.model.experiment import Experiment
from prony.model.job import Job
from prony.model.recipe import Matrix
from prony.model.result import Result
from prony.store.folder import FolderContents
from prony.store.series_points import place_in_history

if TYPE_CHECKING:
    from sqlalchemy import Row

Values = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """The attempt of a job that counts, with where its samples lie."""

    job_id: str
    attempt: int
    result: Result
    summary: Summary
    folder: Path


def experiment_row(experiment: Experiment) -> Values:
    """Return the columns that the noun decides; who owns it is the store's own business.

    What changes while it runs is in columns only, all else in the document, so that a new field needs no migration.
    """
    return {
        "id": experiment.id,
        "name": _clean_text(experiment.name),
        "state": experiment.state.value,
        "created_at": experiment.created_at,
        "ended_at": experiment.ended_at,
        "job_count": experiment.job_count,
        "document": experiment.model_dump_json(exclude={"state", "ended_at"}),
    }


def listed_row(experiment: Experiment) -> Values:
    """Return what lists are searched by; each label is a line, with a line end on both sides."""
    recipe = experiment.recipe
    lines = [_clean_text(f"{key}={value}").replace("\n", " ") for key, value in recipe.labels.items()]
    return {
        "experiment_id": experiment.id,
        "kind": recipe.workload.kind,
        "labels": "\n".join(["", *lines, ""]) if lines else "",
        "submitted_by": _clean_text(experiment.submitted_by).replace("\n", " ")[:128],
    }


def read_labels(lines: str) -> dict[str, str]:
    """Return the labels that a listed row holds."""
    return dict(line.split("=", 1) for line in lines.strip("\n").split("\n") if "=" in line)


def experiment_of(row: Row[Any]) -> Experiment:
    return experiment_from(json.loads(row.document) | {"state": row.state, "ended_at": row.ended_at})


def experiment_from(data: Values) -> Experiment:
    """Read leniently, all but the recipe's matrix, whose axes are extra keys by design and must not be passed over."""
    found = Experiment.read(data)
    matrix = Matrix.model_validate(data["recipe"].get("matrix", {}))
    return found.model_copy(update={"recipe": found.recipe.model_copy(update={"matrix": matrix})})


def job_row(job: Job) -> Values:
    """Return the columns that the noun decides; its position among its siblings is not one of them."""
    return {"id": job.id, "experiment_id": job.experiment_id, "document": job.model_dump_json()}


def result_row(contents: FolderContents, summary: Summary) -> Values:
    """Return the columns that the folder decides; which attempt it is and where it lies are not among them.

    Under `history` come the rows of its series and its point, or None: made here, where the result is opened anyway.
    """
    if summary.job_id != contents.result.job_id:
        raise InputError(
            f"the summary is of job {summary.job_id}, the folder of {contents.result.job_id}",
            hint="import the result again",
        )
    result, device = contents.result, contents.environment.device
    metric = headline_of(summary, contents.job.workload.kind)
    headline = summary.estimates.get(metric or "")
    return {
        "history": place_in_history(contents, summary),
        "job_id": result.job_id,
        "experiment_id": result.experiment_id,
        "state": result.state.value,
        "ended_at": result.ended_at,
        "hardware_id": device.hardware_id,
        "software_id": device.software_id,
        "document": result.model_dump_json(),
        "summary": summary.model_dump_json(),
        "title": _clean_text(summary.title),
        "grade": summary.verdict.grade.value,
        "headline_metric": metric if headline else None,
        "headline_value": _number(headline.value) if headline else None,
        "headline_low": _number(headline.low) if headline else None,
        "headline_high": _number(headline.high) if headline else None,
        "headline_unit": headline.unit if headline else None,
    }


def record_of(row: Row[Any], results: Path) -> Record:
    return Record(
        job_id=row.job_id,
        attempt=row.attempt,
        result=Result.read_json(row.document),
        summary=Summary.read_json(row.summary),
        folder=results / row.folder,
    )


def calibration_row(calibration: Calibration) -> Values:
    return {
        "id": calibration.id,
        "hardware_id": calibration.hardware_id,
        "software_id": calibration.software_id,
        "taken_at": calibration.taken_at,
        "document": calibration.model_dump_json(),
    }


def _number(value: float | None) -> float | None:
    """Return a number that sorts among others: what is none is unknown, as SQLite has it by itself."""
    return None if value is None or math.isnan(value) else value


def _clean_text(text: str) -> str:
    """Return text as both databases keep it: PostgreSQL's has no NUL. The document beside it has all of the text."""
    return text.replace("\0", "\ufffd")
