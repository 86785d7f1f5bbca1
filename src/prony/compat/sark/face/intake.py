"""Record the reports of the results list as results of the fleet: each once, and none is lost that a job waits for."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from prony.app.fleet.fleet import Fleet
from prony.compat.sark.face.claims import Claims
from prony.compat.sark.face.reports import Report, write_report
from prony.compat.sark.face.settings import WHO
from prony.compat.sark.nouns import WorkerResult
from prony.errors import InputError, NotFoundError
from prony.model.job import Job
from prony.model.queue import JobState
from prony.model.result import Result
from prony.store import campaigns

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_LONGEST = 2**20


class Intake:
    """`dropped` counts what counted for nothing, by why."""

    def __init__(self, fleet: Fleet, claims: Claims) -> None:
        self._fleet = fleet
        self._claims = claims
        self.dropped: dict[str, int] = {}
        self.in_hand: set[str] = set()  # jobs whose report is being recorded

    async def take(self, raw: bytes) -> None:
        """Record one report, or drop it and say why. When this returns, its text is needed no more."""
        try:
            told, original = _parse_report(raw)
        except ValueError as exc:
            self._drop("malformed", str(exc)[:200])
            return
        self.in_hand.add(told.job_id)
        try:
            await self._keep(told, original)
        finally:
            self.in_hand.discard(told.job_id)
        self._claims.forget(told.job_id)

    async def _keep(self, told: WorkerResult, original: str) -> None:
        try:
            row, tried = await self._fleet.context.read(lambda connection: _find_job(connection, told.job_id))
        except NotFoundError:
            self._drop("unknown_job", told.job_id)
            return
        # Of a job that is lent again, the same words are a new failure: what came before belongs to an earlier try.
        is_second_copy = row.state != JobState.LEASED and _is_here(tried, original)
        lease_id = None if is_second_copy else await self._lease_of(row, tried, told)
        if lease_id is None:
            self._drop("duplicate", told.job_id)
            return
        try:
            if not await self._record(lease_id, row, told, original):
                self._drop("duplicate", told.job_id)
        except NotFoundError:  # deleted meanwhile
            self._drop("unknown_job", told.job_id)
        except InputError as exc:  # it would be refused again and again
            self._drop("refused", f"{told.job_id}: {exc.message}")

    def _drop(self, reason: str, detail: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        self._fleet.context.hook("sark_result_dropped", reason=reason, detail=detail)

    async def _lease_of(self, row: Row[Any], tried: Sequence[Row[Any]], told: WorkerResult) -> str | None:
        """Return the lease that a report belongs to; None where the job needs it no more.

        Its own worker's, current or lost, or else whoever has the job now: who took it from the list is a guess.
        """
        own = [one for one in tried if one.agent_id == told.worker_id and one.result_document is None]
        current = [one for one in own if one.state == "leased"]
        if current or own:
            return str((current or own)[-1].lease_id)
        if row.state == JobState.LEASED:
            return str(row.lease_id)
        if row.state == JobState.WAITING:
            lease = await self._fleet.leases.take(row.job_id, told.worker_id or "unknown")
            return lease.id if lease is not None else None
        return None

    async def _record(self, lease_id: str, row: Row[Any], told: WorkerResult, original: str) -> bool:
        """Keep it; False where this attempt's was kept in the same moment."""
        fleet = self._fleet
        now = fleet.context.clock.now()
        worker_id = told.worker_id or row.agent_id or "unknown"
        report = Report(told, original, worker_id, row.leased_at or now, now)
        place = fleet.context.home.uploads / f"sark.{secrets.token_hex(8)}"
        try:
            written = await asyncio.to_thread(write_report, place, Job.read_json(row.document), report)
            return await fleet.intake.finish_written(lease_id, written, who=WHO)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _parse_report(raw: bytes) -> tuple[WorkerResult, str]:
    """Return a report and its text. One that names its job and cannot be read otherwise is one of a failure."""
    if len(raw) > _LONGEST:
        raise ValueError(f"a report of {len(raw)} bytes")
    found = json.loads(raw)
    if not isinstance(found, dict) or not isinstance(found.get("job_id"), str):
        raise ValueError("no object with a job_id")  # noqa: TRY004 - of JSON, all that is wrong is its value
    try:
        return WorkerResult.read(found), json.dumps(found, sort_keys=True)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        said = f"the worker's report cannot be read: {where}: {first['msg']}; the connection may have broken"
        worker_id = found.get("worker_id")
        told = WorkerResult(
            job_id=found["job_id"][:200], status="Failed", remark=said[:1000],
            worker_id=worker_id if isinstance(worker_id, str) else None,
        )  # fmt: skip
        return told, told.model_dump_json(exclude_none=True)


def _find_job(connection: Connection, job_id: str) -> tuple[Row[Any], Sequence[Row[Any]]]:
    return campaigns.job(connection, job_id), campaigns.attempts(connection, job_id)


def _is_here(tried: Sequence[Row[Any]], original: str) -> bool:
    """Was this very report recorded before?"""
    documents = [Result.read_json(one.result_document) for one in tried if one.result_document is not None]
    return any(one.reported is not None and one.reported.original == original for one in documents)
