"""Experiments over HTTP: submitted, looked at, changed, watched, and what came out of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.model.answer import NewScores, ScoredJobs
from prony.model.queue import ExperimentView, Modification, Page, Submission
from prony.model.shown_results import ShownResults
from prony.server.events import EventStream
from prony.server.openapi import Described, binary, header_of, text
from prony.server.operation import Operation, fleet_of, waits_of, while_asked, who_of
from prony.server.problems import ClientGoneError
from prony.server.query_params import (
    KEY_PARAMETER,
    DeleteAsked,
    ExperimentsAsked,
    ExportAsked,
    Id,
    ReportAsked,
    ResultsAsked,
    idempotency_key,
)
from prony.server.responses import PassingFile, answer, nothing, respond_created, respond_measurements, respond_tagged

router = APIRouter(prefix="/api/v1/experiments", tags=["experiments"], route_class=Operation)

# A report holds what people wrote: a browser shows it as a page of nobody's, without scripts.
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
_REPORT_TYPES = {
    "html": "text/html; charset=utf-8",
    "pdf": "application/pdf",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "junit": "application/xml",
    "github": "text/markdown; charset=utf-8",
}
_CREATED: dict[int | str, Described] = {
    200: {"model": ExperimentView, "description": "it was made before with the same key",
          "headers": header_of("Idempotency-Replayed", "`true`")},
    201: {"headers": header_of("Location", "URL of the experiment")},
}  # fmt: skip


@router.post(
    "", operation_id="submit", status_code=201, response_model=ExperimentView, responses=_CREATED,
    openapi_extra=KEY_PARAMETER, summary="Submit a recipe",
)  # fmt: skip
async def submit(request: Request, body: Submission) -> Response:
    """The recipe becomes jobs, for agents that fit. A wrong recipe is refused, with every problem."""
    view, is_new = await while_asked(
        request, fleet_of(request).experiments.submit(body, key=idempotency_key(request), who=who_of(request))
    )
    return respond_created(view, is_new=is_new)


@router.get("", operation_id="experiments", response_model=Page[ExperimentView], summary="List experiments")
async def experiments(request: Request, query: Annotated[ExperimentsAsked, Query()]) -> Response:
    """The newest first."""
    page = await fleet_of(request).experiments.page(
        state=query.state, name=query.name, schedule=query.schedule, limit=query.limit, cursor=query.cursor
    )
    return respond_tagged(request, page)


@router.get("/{experiment_id}", operation_id="experiment", response_model=ExperimentView, summary="Get one experiment")
async def experiment(request: Request, experiment_id: Id) -> Response:
    """With the number of its jobs in each state."""
    return respond_tagged(request, await fleet_of(request).experiments.get(experiment_id))


@router.patch("/{experiment_id}", operation_id="modify", response_model=ExperimentView, summary="Change an experiment")
async def modify(request: Request, experiment_id: Id, body: Modification) -> Response:
    """Only given fields change; recipe and labels only while no job was leased."""
    return answer(
        await while_asked(request, fleet_of(request).experiments.modify(experiment_id, body, who=who_of(request)))
    )


@router.delete("/{experiment_id}", operation_id="delete", status_code=204, summary="Delete an experiment")
async def delete(request: Request, experiment_id: Id, query: Annotated[DeleteAsked, Query()]) -> Response:
    """Its results are deleted too."""
    await fleet_of(request).experiments.delete(experiment_id, force=query.force, who=who_of(request))
    return nothing()


@router.post(
    "/{experiment_id}/cancel", operation_id="cancel_experiment", response_model=ExperimentView,
    summary="Cancel an experiment",
)  # fmt: skip
async def cancel_experiment(request: Request, experiment_id: Id) -> Response:
    """Waiting jobs are cancelled at once, running ones as soon as their agents report again."""
    return answer(await fleet_of(request).experiments.cancel(experiment_id, who=who_of(request)))


@router.post(
    "/{experiment_id}/retry", operation_id="retry_experiment", response_model=ExperimentView,
    summary="Retry jobs that did not complete",
)  # fmt: skip
async def retry_experiment(request: Request, experiment_id: Id) -> Response:
    """Every failed, partial or cancelled job waits again."""
    return answer(await fleet_of(request).experiments.retry(experiment_id, who=who_of(request)))


@router.post(
    "/{experiment_id}/rerun", operation_id="rerun", status_code=201, response_model=ExperimentView, responses=_CREATED,
    openapi_extra=KEY_PARAMETER, summary="Submit the same recipe again",
)  # fmt: skip
async def rerun(request: Request, experiment_id: Id) -> Response:
    """With its overrides; the new experiment names the one that it repeats."""
    view, is_new = await while_asked(
        request, fleet_of(request).experiments.rerun(experiment_id, key=idempotency_key(request), who=who_of(request))
    )
    return respond_created(view, is_new=is_new)


@router.post(
    "/{experiment_id}/score", operation_id="score", response_model=ScoredJobs, summary="Score stored answers again"
)
async def score(request: Request, experiment_id: Id, body: NewScores) -> Response:
    """No model is called. Your own scorer does not run on the server: send its score of each answer."""
    return answer(await while_asked(request, fleet_of(request).results.score(experiment_id, body, who=who_of(request))))


@router.get(
    "/{experiment_id}/events", operation_id="watch", response_class=Response, summary="Watch an experiment live",
    responses={200: text("text/event-stream", of="events `snapshot`, `job`, `progress`, `experiment`, each with JSON")},
)  # fmt: skip
async def watch(request: Request, experiment_id: Id) -> Response:
    """First a snapshot, then changes. It ends after the experiment; a new connection begins with a snapshot."""
    source = fleet_of(request).events.watch(experiment_id)
    first = await anext(source, None)
    if first is None:
        raise ClientGoneError
    return EventStream(first, source, waits_of(request))


@router.get("/{experiment_id}/results", operation_id="results", response_model=ShownResults, summary="Get every result")
async def results(request: Request, experiment_id: Id, query: Annotated[ResultsAsked, Query()]) -> Response:
    """Jobs, results, summaries and machines: everything in a report except the samples; and the columns, programs
    and exports that the kind of the workload brings."""
    return respond_measurements(await fleet_of(request).results.show(experiment_id, verify=query.verify))


@router.get(
    "/{experiment_id}/report", operation_id="report", response_class=Response, summary="Get a report",
    responses={200: text(*dict.fromkeys(kind.partition(";")[0] for kind in _REPORT_TYPES.values()), of="the document")},
)  # fmt: skip
async def report(request: Request, experiment_id: Id, query: Annotated[ReportAsked, Query()]) -> Response:
    """As `prony report` writes it; a PDF is printed by a browser on the server, where there is one."""
    document = await fleet_of(request).results.report(experiment_id, query.format, strict=query.strict)
    return Response(
        document, media_type=_REPORT_TYPES[query.format], headers={"Content-Security-Policy": _REPORT_POLICY}
    )


@router.get(
    "/{experiment_id}/export", operation_id="export", response_class=Response, summary="Export an experiment",
    responses={200: binary("application/x-tar", "what `prony export` writes, as a tar")},
)  # fmt: skip
async def export(request: Request, experiment_id: Id, query: Annotated[ExportAsked, Query()]) -> Response:
    """Recipe, jobs, result folders with every sample, and a manifest of checksums; or the requests of its loads."""
    path = await fleet_of(request).results.export(experiment_id, query.format)
    name = experiment_id if query.format == "folder" else f"{experiment_id}-{query.format}"
    return PassingFile(path, media_type="application/x-tar", filename=f"{name}.tar")
