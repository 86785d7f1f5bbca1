"""What analysis says of results over HTTP: gates, sweeps over load, and matrices of configurations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.app.sweeps import slo_of
from prony.model.gate import GateReport
from prony.model.matrix import MatrixReport
from prony.model.sweep import SweepReport
from prony.server.operation import Operation, fleet_of
from prony.server.query_params import GatesAsked, Id, MatrixAsked, SweepAsked
from prony.server.responses import respond_measurements

router = APIRouter(prefix="/api/v1", tags=["analysis"], route_class=Operation)


@router.get(
    "/experiments/{experiment_id}/gates", operation_id="gates", response_model=GateReport, summary="Evaluate the gates"
)
async def gates(request: Request, experiment_id: Id, query: Annotated[GatesAsked, Query()]) -> Response:
    """Each gate of the recipe on each job: passed, failed or undecided (`cannot tell`), with the deciding number."""
    return respond_measurements(
        await fleet_of(request).results.judge_gates(experiment_id, strict=query.strict, more=query.more)
    )


@router.get("/sweep", operation_id="sweep_report", response_model=SweepReport, summary="Analyse a sweep of loads")
async def sweep_report(request: Request, query: Annotated[SweepAsked, Query()]) -> Response:
    """Knee, limit of throughput and the highest load that holds the SLO, each with its evidence."""
    return respond_measurements(await fleet_of(request).results.sweep(query.experiment_ids, slo_of(query.limits)))


@router.get("/matrix", operation_id="matrix", response_model=MatrixReport, summary="Compare configurations")
async def matrix(request: Request, query: Annotated[MatrixAsked, Query()]) -> Response:
    """One number for each row and column, with its interval, cost and power, and which is best."""
    return respond_measurements(await fleet_of(request).results.matrix(query.experiment_ids, query.terms))
