"""Tokens and the audit trail over HTTP: an admin's business."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.app.login import Logins
from prony.model.access import AuditEntry, LoginLink, MadeToken, NewToken, Token
from prony.model.queue import Page
from prony.server.openapi import header_of
from prony.server.operation import Operation, gate_of, who_of
from prony.server.query_params import Id, PageAsked
from prony.server.responses import answer, nothing

router = APIRouter(prefix="/api/v1", tags=["access"], route_class=Operation)


@router.post(
    "/tokens", operation_id="add_token", status_code=201, response_model=MadeToken, summary="Make a token",
    responses={201: {"headers": header_of("Location", "URL of the token")}},
)  # fmt: skip
async def add_token(request: Request, body: NewToken) -> Response:
    """Its secret is only in this answer: the server keeps a hash."""
    gate = gate_of(request)
    made = await gate.blocking(gate.access.add_token, body)
    return answer(made, 201, {"Location": f"/api/v1/tokens/{made.token.id}"})


@router.get("/tokens", operation_id="tokens", response_model=Page[Token], summary="List tokens")
async def tokens(request: Request, query: Annotated[PageAsked, Query()]) -> Response:
    """Without their secrets; also revoked and expired ones."""
    gate = gate_of(request)
    return answer(await gate.blocking(gate.access.tokens, query.limit, query.cursor))


@router.delete("/tokens/{token_id}", operation_id="revoke_token", status_code=204, summary="Revoke a token")
async def revoke_token(request: Request, token_id: Id) -> Response:
    """Here at once, in other servers of the same database within 5 s."""
    gate = gate_of(request)
    await gate.blocking(gate.access.revoke_token, token_id)
    gate.forget()
    return nothing()


@router.post(
    "/login-links", operation_id="login_link", status_code=201, response_model=LoginLink,
    summary="Make a link that logs a browser in",
)  # fmt: skip
async def login_link(request: Request) -> Response:
    """It works once and for a short time, and makes its user an admin in that browser."""
    logins: Logins = request.app.state.logins
    return answer(logins.make_link(who_of(request).name), 201)


@router.get("/audit", operation_id="audit", response_model=Page[AuditEntry], summary="List the audit trail")
async def audit(request: Request, query: Annotated[PageAsked, Query()]) -> Response:
    """The newest first."""
    gate = gate_of(request)
    return answer(await gate.blocking(gate.access.audit, query.limit, query.cursor))
