"""Build the server's responses: JSON, created, tagged for polling, and temporary files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from prony.model.queue import ExperimentView
from prony.server.body import header

JSON = "application/json"


def answer(noun: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(noun.model_dump_json(), status_code=status, media_type=JSON, headers=headers)


def nothing() -> Response:
    return Response(status_code=HTTPStatus.NO_CONTENT)


def respond_created(view: ExperimentView, *, is_new: bool) -> Response:
    """Answer a creation; one that was repeated under its key says so."""
    headers = {"Location": f"/api/v1/experiments/{view.experiment.id}"}
    if is_new:
        return answer(view, HTTPStatus.CREATED, headers)
    return answer(view, HTTPStatus.OK, headers | {"Idempotency-Replayed": "true"})


def respond_tagged(request: Request, noun: BaseModel) -> Response:
    """Answer what is polled: with the tag of its content, and without the content where the client has it."""
    body = noun.model_dump_json().encode()
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if _holds(header(request.scope, b"if-none-match"), tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, media_type=JSON, headers=headers)


def _holds(said: bytes, tag: str) -> bool:
    known = said.decode("latin-1")
    return known.strip() == "*" or tag in (one.strip().removeprefix("W/") for one in known.split(","))


def respond_measurements(noun: BaseModel) -> Response:
    """Answer what holds measurements: what is no finite number is text, because JSON has no other word for it."""
    body = noun.model_dump_json()
    if "NaN" in body or "Infinity" in body:
        body = json.dumps(_finite(json.loads(body)), allow_nan=False, ensure_ascii=False)
    return Response(body, media_type=JSON)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


class PassingFile(FileResponse):
    """A file that was made for this answer alone, and goes with it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)
