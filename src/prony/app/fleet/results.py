"""Results of a fleet: taken in once for each attempt, and handed out in every form."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Row, select

from prony.app import results as local
from prony.app.fleet.leases import Leases
from prony.dispatch.retry import STRIKES, is_tried_again, pause_s
from prony.errors import ConflictError, InputError, NotFoundError, StoreError, TransportError
from prony.measure.samples import SAMPLES, TELEMETRY
from prony.model.access import Principal
from prony.model.agent import AgentState
from prony.model.dossier import Dossier, Entry
from prony.model.estimate import Summary
from prony.model.lease import FinishAnswer, LeaseRequest
from prony.model.queue import JobState
from prony.model.result import Failure, Result, ResultState
from prony.store import agents as agent_rows
from prony.store import ledger, parcel, queue, tables, transfer
from prony.store.folder import FolderContents, read_folder, read_nouns
from prony.store.writer import Desk

_ENDS = {
    ResultState.COMPLETE: JobState.COMPLETE,
    ResultState.PARTIAL: JobState.PARTIAL,
    ResultState.FAILED: JobState.FAILED,
}


@dataclass(frozen=True)
class _Arrived:
    """A result that is whole and safe, beside its place."""

    folder: Path
    contents: FolderContents
    summary: Summary


class Results(Leases):
    """Taken in once, handed out often."""

    # In

    async def upload_offset(self, lease_id: str, *, who: Principal) -> int:
        """Return how much of a result has arrived, so that a broken upload goes on from there."""
        await self._own(lease_id, who)
        part = self._part(lease_id)
        return part.stat().st_size if part.exists() else 0

    async def upload(self, lease_id: str, offset: int, chunks: AsyncIterator[bytes], *, who: Principal) -> int:
        """Take in one piece of a result; return how much is here now."""
        await self._own(lease_id, who)
        part = self._part(lease_id)
        part.parent.mkdir(parents=True, exist_ok=True)
        here = part.stat().st_size if part.exists() else 0
        if offset != here:
            raise ConflictError(
                f"{here} bytes are here, so a piece at {offset} does not fit",
                hint="ask for the offset and go on from there",
                code="wrong_offset",
            )
        await self._save(chunks, part, start=offset)
        self.renewed[lease_id] = self.now()
        return part.stat().st_size

    async def finish(
        self,
        lease_id: str,
        chunks: AsyncIterator[bytes],
        *,
        sha256: str,
        next: bool = False,  # noqa: A002 - the name of the request's own parameter
        wait_s: float = 0,
        who: Principal,
    ) -> FinishAnswer:
        """Record an attempt's result, once. The agent may forget it when this has returned, and not before."""
        row = await self._own(lease_id, who)
        tar = self._part(lease_id).with_suffix(f".{secrets.token_hex(4)}")
        try:
            tar.parent.mkdir(parents=True, exist_ok=True)
            if not await self._save(chunks, tar):
                self._take_uploaded(lease_id, tar)
            arrived = await asyncio.to_thread(self._open, tar, sha256, row)
        finally:
            tar.unlink(missing_ok=True)
        try:
            accepted = await self.write(lambda desk: self._record(desk, lease_id, arrived))
        finally:
            shutil.rmtree(arrived.folder, ignore_errors=True)
        if accepted:
            self._count(row, arrived.contents.result)
        lease = None
        card = self.floor.cards.get(row.attempt_agent)
        if next and card is not None:
            self.floor.release(lease_id)
            asking = LeaseRequest(agent_id=card.id, incarnation=card.incarnation, wait_s=wait_s)
            lease = await self.lease(asking, who=who)
        return FinishAnswer(accepted=accepted, lease=lease)

    async def _own(self, lease_id: str, who: Principal) -> Row[Any]:
        row = await self.read(lambda connection: queue.of_lease(connection, lease_id))
        self.check_self(row.attempt_agent, who)
        return row

    def _part(self, lease_id: str) -> Path:
        return self.home.uploads / f"{lease_id}.part"

    async def _save(self, chunks: AsyncIterator[bytes], path: Path, *, start: int = 0) -> int:
        """Append a stream to a file; return how many bytes came."""
        size = 0
        with path.open("ab") as file:
            async for chunk in chunks:
                size += len(chunk)
                if start + size > self.settings.max_upload_bytes:
                    limit = self.settings.max_upload_bytes
                    raise InputError(f"a result may have {limit} bytes", hint="measure fewer runs", code="too_large")
                try:
                    file.write(chunk)
                except OSError as exc:
                    raise StoreError(f"cannot keep the result: {exc.strerror}", hint="is the disk full?") from exc
        return size

    def _take_uploaded(self, lease_id: str, tar: Path) -> None:
        try:
            self._part(lease_id).replace(tar)
        except FileNotFoundError as exc:
            hint = "send it in the body, or upload it in pieces first"
            raise InputError("there is no result", hint=hint, code="no_body") from exc

    def _open(self, tar: Path, sha256: str, row: Row[Any]) -> _Arrived:
        """Check, unpack and summarise a result beside its place; runs in a thread of its own."""
        if _sha256(tar) != sha256.lower():
            raise TransportError(
                "the result that arrived is not the one that was sent: its SHA-256 differs",
                hint="send it again from its beginning",
                code="checksum_mismatch",
            )
        folder = tar.with_suffix(f".{secrets.token_hex(4)}.folder")
        try:
            parcel.unpack(tar, folder)
            contents = read_folder(folder)
            _check_is_of(contents, row)
            summary = local.summary_of(folder)
            _sync(folder)
        except (StoreError, NotFoundError) as exc:
            shutil.rmtree(folder, ignore_errors=True)
            if exc.code in ("store", "not_found") and folder.parent.exists() and not _is_disk(exc):
                raise InputError(f"the result is damaged: {exc.message}", hint=exc.hint, code="damaged") from exc
            raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return _Arrived(folder, contents, summary)

    def _record(self, desk: Desk, lease_id: str, arrived: _Arrived) -> bool:
        """Runs in the writer's thread."""
        row = queue.of_lease(desk.connection, lease_id)
        if _is_recorded(desk, row.job_id, row.attempt_number):
            return False
        place = self.home.result_folder(row.experiment_id, row.job_id, row.attempt_number)
        _put(arrived.folder, place)
        inside = place.relative_to(self.home.results).as_posix()
        ledger.add_result(desk.connection, arrived.contents, arrived.summary, attempt=row.attempt_number, folder=inside)
        result = arrived.contents.result
        failure = failure_of(result)
        now = self.clock.now()
        reason = failure.message if failure else ""
        queue.end_attempt(desk.connection, lease_id, result.state.value, at=now, reason=reason)
        if row.state == JobState.LEASED and row.lease_id == lease_id:
            self._end_current(desk, row, result, failure)
        else:
            self._end_late(desk, row, result)
        self._judge(desk, row, result, failure)
        self.close_if_done(desk, row.experiment_id)
        desk.tell("freed", lease_id)
        desk.tell("job", f"{row.experiment_id}/{row.job_id}")
        return True

    def _end_current(self, desk: Desk, row: Row[Any], result: Result, failure: Failure | None) -> None:
        state, now = _ENDS[result.state], self.clock.now()
        reason = failure.message if failure else ""
        may_do_better = result.state is ResultState.PARTIAL or (
            result.state is ResultState.FAILED and is_tried_again(failure)
        )
        if row.cancel_asked and state is not JobState.COMPLETE:
            queue.end(desk.connection, row.number, JobState.CANCELLED, at=now, reason="cancelled")
        elif may_do_better and row.tries_left > 1:
            pause = pause_s(row.attempt)
            queue.put_back(
                desk.connection,
                row.number,
                tries_left=row.tries_left - 1,
                not_before=now.timestamp() + pause,
                avoid=row.agent_id,
                reason=reason,
            )
            desk.tell("later", row.lot_id, round(pause * 1000))
        else:
            queue.end(desk.connection, row.number, state, at=now, reason=reason, failure=failure)

    def _end_late(self, desk: Desk, row: Row[Any], result: Result) -> None:
        """A result of a lease that was lost: a whole one still counts, and whoever runs the job again may stop."""
        if result.state is not ResultState.COMPLETE or row.state in (JobState.COMPLETE, JobState.CANCELLED):
            return
        now = self.clock.now()
        if row.state == JobState.LEASED:
            queue.end_attempt(desk.connection, row.lease_id, "cancelled", at=now, reason="an earlier attempt came in")
            desk.tell("freed", row.lease_id)
        queue.end(desk.connection, row.number, JobState.COMPLETE, at=now)

    def _judge(self, desk: Desk, row: Row[Any], result: Result, failure: Failure | None) -> None:
        """Count it against an agent when a job that failed there is done elsewhere; three in a row and it is faulty."""
        card = self.floor.cards.get(row.attempt_agent)
        if result.state is ResultState.COMPLETE:
            if card is not None and card.strikes:
                agent_rows.change(desk.connection, card.id, strikes=0)
                desk.tell("agent", card.id)
            if row.attempt_number > 1:
                for one in queue.attempts(desk.connection, row.job_id):
                    if one.state in ("failed", "lost") and one.agent_id != row.attempt_agent:
                        self._strike(desk, one.agent_id)
        elif failure is not None and failure.whose == "sut" and _is_done_elsewhere(desk, row):
            self._strike(desk, row.attempt_agent)

    def _strike(self, desk: Desk, agent_id: str) -> None:
        count = agent_rows.strike(desk.connection, agent_id)
        if count >= STRIKES:
            reason = f"{count} jobs in a row failed here and were done elsewhere"
            agent_rows.change(desk.connection, agent_id, state=AgentState.FAULTY.value, reason=reason)
        desk.tell("agent", agent_id)

    def _count(self, row: Row[Any], result: Result) -> None:
        failure = failure_of(result)
        seconds = (self.clock.now() - row.attempt_leased_at).total_seconds()
        self.hook("finished", state=result.state.value, code=failure.code if failure else "", seconds=seconds)

    # Out

    async def results(self, experiment_id: str) -> Dossier:
        return await asyncio.to_thread(local.dossier_of, self.store, experiment_id)

    async def report(self, experiment_id: str, report_format: str) -> str | bytes:
        from prony.report import render

        return await asyncio.to_thread(lambda: render(local.dossier_of(self.store, experiment_id), report_format))

    async def result(self, job_id: str) -> Entry:
        def gather() -> Entry:
            record = self.store.record(job_id)
            if record is None:
                raise NotFoundError(f"job {job_id} has no result yet", hint="`prony watch ID` waits", code="no_result")
            contents = read_nouns(record.folder)
            return Entry(
                job=contents.job,
                result=record.result,
                summary=record.summary,
                environment=contents.environment,
                folder=record.folder,
            )

        return await asyncio.to_thread(gather)

    async def samples(self, job_id: str) -> Path:
        return await self._file(job_id, SAMPLES)

    async def telemetry(self, job_id: str) -> Path:
        return await self._file(job_id, TELEMETRY)

    async def _file(self, job_id: str, name: str) -> Path:
        path = (await self.result(job_id)).folder / name
        if not path.is_file():
            raise NotFoundError(f"the result of job {job_id} has no {name}", code="no_result")
        return path

    async def export(self, experiment_id: str) -> Path:
        """Write what `prony export` would as one tar in a temporary place; whoever asked removes it."""
        await asyncio.to_thread(self._check_ended, experiment_id)
        return await asyncio.to_thread(self._export, experiment_id)

    def _check_ended(self, experiment_id: str) -> None:
        state = self.store.experiment(experiment_id).state
        if state.value in ("pending", "running"):
            raise ConflictError(f"experiment {experiment_id} is {state}", hint="wait for it, or cancel it")

    def _export(self, experiment_id: str) -> Path:
        with tempfile.TemporaryDirectory(prefix="prony-export-") as scratch:
            folder = Path(scratch) / experiment_id
            transfer.export(self.store, experiment_id, folder)
            descriptor, name = tempfile.mkstemp(prefix="prony-export-", suffix=".tar")
            with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
                tar.add(folder, arcname=experiment_id)
        return Path(name)


def failure_of(result: Result) -> Failure | None:
    """Return why a result has no numbers: its own reason, or that of its last repetition that failed."""
    if result.failure is not None:
        return result.failure
    failed = [one.failure for one in result.repetitions if one.failure is not None]
    return failed[-1] if failed and result.state is not ResultState.COMPLETE else None


def _check_is_of(contents: FolderContents, row: Row[Any]) -> None:
    result = contents.result
    if (result.job_id, result.experiment_id) != (row.job_id, row.experiment_id):
        raise InputError(
            f"this is the result of job {result.job_id} of {result.experiment_id}, "
            f"but the lease is for {row.job_id} of {row.experiment_id}",
            hint="send it under the lease that it was made for",
            code="damaged",
        )


def _is_disk(error: StoreError | NotFoundError) -> bool:
    return "disk" in error.hint or "space" in error.message


def _is_recorded(desk: Desk, job_id: str, attempt: int) -> bool:
    table = tables.result
    query = select(table.c.job_id).where(table.c.job_id == job_id, table.c.attempt == attempt)
    return desk.connection.execute(query).first() is not None


def _is_done_elsewhere(desk: Desk, row: Row[Any]) -> bool:
    """Did other agents do jobs of the same lot, and this one none?"""
    table, attempt = tables.queue, tables.attempt
    query = select(attempt.c.agent_id).join(table, table.c.job_id == attempt.c.job_id)
    query = query.where(table.c.lot_id == row.lot_id, attempt.c.state == "complete").distinct()
    done_by = set(desk.connection.execute(query).scalars())
    return bool(done_by) and row.attempt_agent not in done_by


def _put(folder: Path, place: Path) -> None:
    """Rename a result into its place; what lies there without a row was left by a crash, or by ourselves just now."""
    if not folder.exists():
        return  # the operation is carried out again, and it lies there already
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        away = folder.with_suffix(".old")
        place.rename(away)
        shutil.rmtree(away, ignore_errors=True)
    folder.rename(place)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    """Have a folder's files on the disk before anyone is told that they are."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
