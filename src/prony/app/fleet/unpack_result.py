"""Unpack the results that agents bring: checked, summarised and on the disk.

Opening is most of what a result costs a server, and it reads what others wrote: processes beside the server do it.
"""

from __future__ import annotations

import errno
import shutil
from dataclasses import dataclass
from pathlib import Path

from prony.app.fleet.work_pool import Trade, WorkPool
from prony.app.fleet.work_process import work
from prony.app.results import summarise_contents
from prony.errors import InputError, NotFoundError, StoreError, TransportError
from prony.model.estimate import Summary
from prony.model.job import Job
from prony.model.result import Failure, Result, ResultState
from prony.runner.merge_gang import merge, reason_of
from prony.runner.parts import PartFolder
from prony.store import result_tar
from prony.store.codecs import Values, result_row
from prony.store.folder import FolderContents, read_folder, read_nouns


@dataclass(frozen=True)
class UnpackOrder:
    """`folder`: where to put it; it is new, and on the same disk as the results."""

    tar: Path
    folder: Path
    sha256: str
    job_id: str
    experiment_id: str
    is_part: bool = False  # of a load: nothing is said of it alone


@dataclass(frozen=True)
class Brought:
    """What one agent of a gang brought, and its name."""

    agent: str
    folder: Path


@dataclass(frozen=True)
class MergeOrder:
    """Parts of a job, to be put together in a new folder; `failure` is why it came to no end, where it did not.

    `is_lost`: a member was lost, and what the others say of their failures is what came of it."""

    parts: tuple[Brought, ...]
    folder: Path
    job: Job
    failure: Failure | None
    is_lost: bool = False


@dataclass(frozen=True)
class UnpackedResult:
    """A result that is whole and safe, beside its place: what the store is to keep, and how it went. Of a part of a
    load there is no row."""

    folder: Path
    row: Values
    state: ResultState
    failure: Failure | None


def unpack_result(order: UnpackOrder) -> UnpackedResult:
    """Check, unpack and summarise a result beside its place; of one that is refused nothing stays."""
    check_arrival(order.tar, order.sha256)
    try:
        result_tar.unpack(order.tar, order.folder)
        contents = read_folder(order.folder)
        _check_is_of(contents, order)
        row = {} if order.is_part else result_row(contents, summarise_brought(contents))
    except (StoreError, NotFoundError) as exc:
        shutil.rmtree(order.folder, ignore_errors=True)
        if _is_ours(exc):
            raise
        raise InputError(f"the result is damaged: {exc.message}", hint=exc.hint, code="damaged") from exc
    except BaseException:
        shutil.rmtree(order.folder, ignore_errors=True)
        raise
    return UnpackedResult(order.folder, row, contents.result.state, _failure_of(contents.result))


def check_arrival(tar: Path, sha256: str) -> None:
    """Refuse a file that is not the one that was sent."""
    if result_tar.measure_tar(tar).sha256 != sha256.lower():
        raise TransportError(
            "the result that arrived is not the one that was sent: its SHA-256 differs",
            hint="send it again from its beginning",
            code="checksum_mismatch",
        )


def summarise_written(contents: FolderContents) -> UnpackedResult:
    """Summarise a folder that this process wrote itself, of numbers that others told: there is nothing to unpack, and
    no samples were told that could be damaged."""
    try:
        summary = summarise_contents(contents)
    except (ValueError, TypeError, ArithmeticError) as exc:
        raise _refusal(exc) from exc
    row = result_row(contents, summary)
    result_tar.sync_tree(contents.path)
    return UnpackedResult(contents.path, row, contents.result.state, _failure_of(contents.result))


def _merge_results(order: MergeOrder) -> UnpackedResult:
    """Put the parts of a load together, and summarise the whole."""
    found = [PartFolder(one.agent, one.folder, read_nouns(one.folder).result) for one in order.parts]
    failure = order.failure
    if failure is not None and not order.is_lost:  # what a member says itself tells more than that it failed
        failure = reason_of(found, order.job) or failure
    try:
        merge(found, order.job, order.folder, failure)
        contents = read_folder(order.folder)
        row = result_row(contents, summarise_brought(contents))
    except BaseException:
        shutil.rmtree(order.folder, ignore_errors=True)
        raise
    result_tar.sync_tree(order.folder)
    return UnpackedResult(order.folder, row, contents.result.state, _failure_of(contents.result))


def _failure_of(result: Result) -> Failure | None:
    """Return why a result has no numbers: its own reason, or that of its last repetition that failed."""
    if result.failure is not None:
        return result.failure
    failed = [one.failure for one in result.repetitions if one.failure is not None]
    return failed[-1] if failed and result.state is not ResultState.COMPLETE else None


def _check_is_of(contents: FolderContents, order: UnpackOrder) -> None:
    result = contents.result
    if (result.job_id, result.experiment_id) != (order.job_id, order.experiment_id):
        raise InputError(
            f"this is the result of job {result.job_id} of {result.experiment_id}, "
            f"but the lease is for {order.job_id} of {order.experiment_id}",
            hint="send it under the lease that it was made for",
            code="damaged",
        )


def summarise_brought(contents: FolderContents) -> Summary:
    """Summarise what somebody brought, which may be anything: samples that are none of a runner's are refused."""
    import polars as pl

    try:
        return summarise_contents(contents)
    except (ValueError, TypeError, ArithmeticError, pl.exceptions.PolarsError) as exc:
        raise _refusal(exc) from exc


def _refusal(exc: Exception) -> InputError:
    said = str(exc).strip().partition("\n")[0][:200]
    hint = "send the folder unchanged, as `prony exec` wrote it"
    return InputError(f"the result cannot be summarised: {said}", hint=hint, code="damaged")


def _is_ours(error: StoreError | NotFoundError) -> bool:
    """Is it this machine that cannot read or write, rather than the result that is damaged?"""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno not in (None, errno.ENOENT)


def carried_out(order: UnpackOrder | MergeOrder) -> UnpackedResult:
    return _merge_results(order) if isinstance(order, MergeOrder) else unpack_result(order)


# In processes of their own


def _lost() -> StoreError:
    return StoreError(
        "the process that unpacks results ended while it read this one",
        hint="memory may have run out; check the server's log, and give it more memory",
        code="unpacker_lost",
    )


OPENING: Trade[UnpackOrder | MergeOrder, UnpackedResult] = Trade(
    "unpacks results", "prony.app.fleet.unpack_result", carried_out, on_loss=_lost, on_limit=_lost
)


class Openers(WorkPool[UnpackOrder | MergeOrder, UnpackedResult]):
    """The processes in which a server opens results."""

    def __init__(self, most: int) -> None:
        super().__init__(OPENING, most)

    async def open(self, order: UnpackOrder | MergeOrder) -> UnpackedResult:
        return await self.do(order)


def main() -> None:
    import polars  # noqa: F401 - what every order needs, before the first one comes

    from prony.ports.workload import load_parts

    load_parts("summary")

    work(carried_out)
