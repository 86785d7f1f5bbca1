"""Show campaigns, jobs and results as SARK's clients know them, as objects and as CSV files.

The CSV files of campaigns are written anew from what is stored, whenever one is asked for.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prony.app.fleet.fleet import Fleet
from prony.compat.sark.nouns import CSV_COLUMNS, word_of
from prony.errors import InputError, NotFoundError
from prony.kinds.model.schema import ModelWorkload
from prony.model.experiment import ExperimentState
from prony.model.job import Job
from prony.model.queue import JobState
from prony.model.result import Result
from prony.model.shown import visible
from prony.store import campaigns

if TYPE_CHECKING:
    from prony.store.database import Connection, Row


_STATES = {
    JobState.WAITING: "pending",
    JobState.LEASED: "running",
    JobState.COMPLETE: "complete",
    JobState.PARTIAL: "complete",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
}
_CSV_STATES = {"complete": "Complete", "failed": "Failed", "cancelled": "Cancelled"}
# SARK counts four; one that was cancelled has failed to bring anything.
_COUNTED = {"pending": "pending", "running": "running", "complete": "complete", "failed": "failed",
            "cancelled": "failed"}  # fmt: skip


@dataclass(frozen=True)
class Around:
    """What is known besides the rows: the names of workers' devices, and why the jobs of a lot wait."""

    names: Mapping[str, str]
    why: Callable[[str], str]


def shown_job(row: Row[Any], around: Around) -> dict[str, Any]:
    worker_id = row.agent_id or row.pinned
    shown = _settings(row.document) | {
        "job_id": row.job_id,
        "campaign_id": row.experiment_id,
        "worker_id": worker_id,
        "submitted_at": row.created_at.timestamp(),
        "status": _STATES[JobState(row.state)],
        "retry_count": max(0, row.attempt - 1),
    }
    if row.leased_at is not None:
        shown["started_at"] = row.leased_at.timestamp()
    if row.ended_at is not None:
        shown["completed_at"] = row.ended_at.timestamp()
    if worker_id in around.names:
        shown["device_name"] = around.names[worker_id]
    reason = row.reason or (around.why(row.lot_id) if row.state == JobState.WAITING else "")
    return shown | ({"reason": reason} if reason else {})


@lru_cache(maxsize=8192)
def _settings(document: str) -> dict[str, Any]:
    """Return what a job asks for. Remembered, because dashboards ask for thousands every few seconds."""
    job = Job.read_json(document)
    work = job.work(ModelWorkload)
    return {
        "model_url": work.model,
        "compute_unit": word_of(work.engine, work.unit),
        "num_inference_runs": job.measure.runs,
        "timeout_seconds": job.limits.timeout / 10**9,
    }


def shown_result(row: Row[Any]) -> dict[str, Any] | None:
    """Return what the worker reported, with when it came; None where nothing did."""
    if row.result_document is None:
        return None
    result = Result.read_json(row.result_document)
    if result.reported is None or result.ended_at is None:
        return None
    told: dict[str, Any] = json.loads(result.reported.original)
    # To the second before its fraction, with its zone: as the files that people have already.
    return told | {"saved_at": result.ended_at.timestamp(), "CreatedUtc": result.ended_at.isoformat()}


def shown_campaign(experiment: Row[Any], model_url: str, rows: Sequence[Row[Any]], around: Around) -> dict[str, Any]:
    jobs = [shown_job(row, around) for row in rows]
    breakdown = {"pending": 0, "running": 0, "complete": 0, "failed": 0}
    for job in jobs:
        breakdown[_COUNTED[job["status"]]] += 1
    is_over = breakdown["complete"] + breakdown["failed"] >= len(jobs)
    shown = {
        "campaign_id": experiment.id,
        "model_url": model_url,
        "total_jobs": len(jobs),
        "completed_jobs": breakdown["complete"],
        "failed_jobs": breakdown["failed"],
        "status": "completed" if is_over else "running",
        "created_at": experiment.created_at.timestamp(),
        "jobs": jobs,
        "job_breakdown": breakdown,
    }
    if is_over and experiment.ended_at is not None:
        shown["results_file"] = f"outputs/{_file_name(experiment.id, experiment.ended_at)}"
    return shown


def _csv_rows(rows: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    """Return the lines of a table, in the order in which results came; a job that ended without one has a line too."""
    ended = [(row.result_at or row.ended_at, row.number, row) for row in rows]
    return [_csv_row(row) for _, _, row in sorted(ended, key=lambda one: one[:2])]


def _csv_row(row: Row[Any]) -> dict[str, Any]:
    told = shown_result(row) or {"CreatedUtc": row.ended_at.isoformat()}
    own = {
        "Status": _CSV_STATES[_STATES[JobState(row.state)]],
        "UploadId": row.experiment_id,
        "JobId": row.job_id,
        "ComputeUnits": told.get("ComputeUnits") or _settings(row.document)["compute_unit"],
    }
    return told | own


def _file_name(campaign_id: str, ended_at: datetime) -> str:
    """Return the name of a campaign's file, with the end of the campaign in this machine's own time."""
    return f"{campaign_id}_{ended_at.astimezone():%Y%m%d_%H%M%S}_results.csv"


# A spreadsheet takes a cell that begins so for a formula, and these come from whoever registered.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sark_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return the table; what a row does not know is empty."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in CSV_COLUMNS])
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, str):
        text = visible(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return value


_OPEN = (ExperimentState.PENDING.value, ExperimentState.RUNNING.value)
_FOLDER = "outputs"


@dataclass(frozen=True)
class CsvFile:
    name: str
    text: str


class CampaignFiles:
    """A file appears when its campaign has ended, whole, and under the same name for ever."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def campaign_csv(self, campaign_id: str) -> CsvFile:
        """Return what a campaign brought so far."""

        def ask(connection: Connection) -> str:
            campaigns.require(connection, campaign_id)
            rows = _csv_rows(campaigns.results(connection, campaign_id))
            if not rows:
                raise NotFoundError("No results available yet")
            return sark_csv(rows)

        return CsvFile(f"{campaign_id}_results.csv", await self._fleet.context.read(ask))

    async def every_csv(self) -> CsvFile:
        def ask(connection: Connection) -> str:
            rows = _csv_rows(campaigns.results(connection))
            if not rows:
                raise NotFoundError("No results available")
            return sark_csv(rows)

        text = await self._fleet.context.read(ask)
        return CsvFile(f"all_results_{self._fleet.context.clock.now().astimezone():%Y%m%d_%H%M%S}.csv", text)

    async def list_files(self) -> dict[str, Any]:
        def ask(connection: Connection) -> list[dict[str, Any]]:
            found = [row for row in campaigns.every(connection) if _is_ended(row)]
            found.sort(key=lambda row: row.ended_at, reverse=True)
            return [_build_row(row, _written(connection, row)) for row in found]

        listed = await self._fleet.context.read(ask)
        return {"count": len(listed), "files": listed}

    async def file(self, name: str) -> CsvFile:
        if ".." in name or name.startswith("/"):
            raise InputError("Invalid filename")

        def ask(connection: Connection) -> str:
            row = campaigns.one(connection, name.partition("_")[0])
            if row is None or not _is_ended(row) or _file_name(row.id, row.ended_at) != name:
                raise NotFoundError("File not found")
            return _written(connection, row)

        return CsvFile(name, await self._fleet.context.read(ask))


def _is_ended(row: Row[Any]) -> bool:
    return row.state not in _OPEN and row.ended_at is not None


def _written(connection: Connection, row: Row[Any]) -> str:
    return sark_csv(_csv_rows(campaigns.results(connection, row.id)))


def _build_row(row: Row[Any], text: str) -> dict[str, Any]:
    name, size = _file_name(row.id, row.ended_at), len(text.encode())
    return {
        "filename": name,
        "path": f"{_FOLDER}/{name}",
        "size_bytes": size,
        "size_mb": round(size / 2**20, 2),
        "modified": row.ended_at.astimezone().replace(tzinfo=None, microsecond=0).isoformat(),
    }
