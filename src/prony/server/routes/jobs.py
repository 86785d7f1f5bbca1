"""Jobs over HTTP: listed, looked at, stopped, tried again; their logs and what they measured."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from prony.app.fleet.closing import ClosingError
from prony.model.experiment_data import Entry
from prony.model.log import LogFilter, LogPiece
from prony.model.queue import JobBatch, JobBatchAnswer, JobDetail, Page, QueuedJob
from prony.model.result_files import ResultFiles
from prony.server.openapi import binary, header_of, text
from prony.server.operation import Operation, fleet_of, waits_of, who_of
from prony.server.query_params import FileAsked, FileTextAsked, Id, JobsAsked, LogsAsked
from prony.server.responses import answer, respond_measurements, respond_tagged

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=Operation)

_PARQUET = "application/vnd.apache.parquet"
_PIECE = {
    "headers": header_of("Prony-Next-Offset", "where the next part begins")
    | header_of("Prony-Ended", "`true` when nothing will follow, else `false`")
}
_LOG = text("text/plain", of="the log from `offset` on") | _PIECE
_FILE_TEXT = text("text/plain", of="the file from `offset` on") | _PIECE
# A file holds whatever a stranger's program wrote: no browser is to show it as a page.
_FILE_POLICY = {"Content-Security-Policy": "sandbox; default-src 'none'"}


@router.get("", operation_id="jobs", response_model=Page[QueuedJob], summary="List jobs")
async def jobs(request: Request, query: Annotated[JobsAsked, Query()]) -> Response:
    """Those that match every filter, the newest first."""
    page = await fleet_of(request).jobs.page(
        state=query.state,
        experiment=query.experiment,
        agent=query.agent,
        label=query.label_pair,
        limit=query.limit,
        cursor=query.cursor,
    )
    return respond_tagged(request, page)


@router.post("/batch", operation_id="batch", response_model=JobBatchAnswer, summary="Cancel or retry many jobs")
async def batch(request: Request, body: JobBatch) -> Response:
    """Those that are named, or those that match the filters."""
    return answer(await fleet_of(request).jobs.batch(body, who=who_of(request)))


@router.get("/{job_id}", operation_id="job", response_model=JobDetail, summary="Get one job")
async def job(request: Request, job_id: Id) -> Response:
    """With its attempts and everything that its runner gets."""
    return respond_tagged(request, await fleet_of(request).jobs.get(job_id))


@router.post("/{job_id}/cancel", operation_id="cancel", response_model=QueuedJob, summary="Cancel a job")
async def cancel(request: Request, job_id: Id) -> Response:
    """A running job stops as soon as its agent reports again."""
    return answer(await fleet_of(request).jobs.cancel(job_id, who=who_of(request)))


@router.post("/{job_id}/retry", operation_id="retry", response_model=QueuedJob, summary="Retry a job")
async def retry(request: Request, job_id: Id) -> Response:
    """One that failed, is partial or was cancelled waits again."""
    return answer(await fleet_of(request).jobs.retry(job_id, who=who_of(request)))


@router.get(
    "/{job_id}/logs", operation_id="logs", response_class=Response, responses={200: _LOG}, summary="Read a job's log"
)
async def logs(request: Request, job_id: Id, query: Annotated[LogsAsked, Query()]) -> Response:
    """Of its last attempt, or of `attempt`. With `wait_s` the answer waits until there is more. Each line is
    `TIME SOURCE TEXT`, as it was printed, without control characters."""
    fleet, wanted = fleet_of(request), LogFilter(query.search, query.source)

    async def piece(wait_s: float) -> LogPiece:
        return await fleet.jobs.read_log(
            job_id, attempt=query.attempt, offset=query.offset, wanted=wanted, wait_s=wait_s
        )

    try:
        found = await (waits_of(request).attend(request.receive, piece(query.wait_s)) if query.wait_s else piece(0))
    except ClosingError:
        found = await piece(0)
    return _respond_piece(found)


def _respond_piece(piece: LogPiece) -> Response:
    headers = {"Prony-Next-Offset": str(piece.next_offset), "Prony-Ended": "true" if piece.ended else "false"}
    return Response(piece.text, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/{job_id}/files", operation_id="files", response_model=ResultFiles, summary="List a result's files")
async def files(request: Request, job_id: Id) -> Response:
    """Everything in the result folder, with sizes, and which files are text."""
    return answer(await fleet_of(request).results.files(job_id))


@router.get(
    "/{job_id}/file", operation_id="file", response_class=Response, summary="Get a file of a result",
    responses={200: binary("application/octet-stream", "the file as it is")},
)  # fmt: skip
async def file(request: Request, job_id: Id, query: Annotated[FileAsked, Query()]) -> Response:
    """As it is stored in the result folder."""
    path = await fleet_of(request).results.file(job_id, query.name)
    return FileResponse(
        path, media_type="application/octet-stream", filename=f"{job_id}-{path.name}", headers=_FILE_POLICY
    )


@router.get(
    "/{job_id}/file-text", operation_id="file_text", response_class=Response, responses={200: _FILE_TEXT},
    summary="Read a text file of a result",
)  # fmt: skip
async def file_text(request: Request, job_id: Id, query: Annotated[FileTextAsked, Query()]) -> Response:
    """Piece by piece, without control characters."""
    return _respond_piece(await fleet_of(request).results.file_text(job_id, query.name, offset=query.offset))


@router.get("/{job_id}/result", operation_id="result", response_model=Entry, summary="Get one job's result")
async def result(request: Request, job_id: Id) -> Response:
    """With its summary and the machine that it came from."""
    return respond_measurements(await fleet_of(request).results.get(job_id))


@router.get(
    "/{job_id}/samples", operation_id="samples", response_class=Response, summary="Get every sample of a job",
    responses={200: binary(_PARQUET, "one row a sample")},
)  # fmt: skip
async def samples(request: Request, job_id: Id) -> Response:
    """As its runner measured them."""
    path = await fleet_of(request).results.samples(job_id)
    return FileResponse(path, media_type=_PARQUET, filename=f"{job_id}-samples.parquet")


@router.get(
    "/{job_id}/telemetry", operation_id="telemetry", response_class=Response, summary="Get readings of the probes",
    responses={200: binary(_PARQUET, "one row a reading")},
)  # fmt: skip
async def telemetry(request: Request, job_id: Id) -> Response:
    """Counters of the machine during the run."""
    path = await fleet_of(request).results.telemetry(job_id)
    return FileResponse(path, media_type=_PARQUET, filename=f"{job_id}-telemetry.parquet")
