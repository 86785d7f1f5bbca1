"""The pages that document the API: Swagger UI from the installed package, so that no other machine is asked."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from prony.errors import NotFoundError
from prony.server.openapi import document
from prony.server.operation import Operation
from prony.server.query_params import Id

router = APIRouter(tags=["documentation"], route_class=Operation, include_in_schema=False)

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ASSETS = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "favicon-32x32.png": "image/png"}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Prony: the API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="page"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/page.js"></script>
</body>
</html>
"""
# The bundled page knows OpenAPI up to 3.0 by name; what we use of 3.1 it shows all the same.
_SCRIPT = """"use strict";
fetch("/openapi.json")
  .then((response) => response.json())
  .then((spec) => {
    spec.openapi = "3.0.3";
    window.ui = SwaggerUIBundle({
      spec,
      dom_id: "#page",
      deepLinking: true,
      displayOperationId: true,
      presets: [SwaggerUIBundle.presets.apis],
      layout: "BaseLayout",
    });
  });
"""


@router.get("/openapi.json", operation_id="openapi")
async def openapi(request: Request) -> Response:
    return Response(json.dumps(document(request.app)), media_type="application/json")


@router.get("/docs", operation_id="docs")
async def docs() -> Response:
    return Response(_PAGE, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": _POLICY})


@router.get("/docs/{name}", operation_id="docs_asset")
async def docs_asset(name: Id) -> Response:
    if name == "page.js":
        return Response(_SCRIPT, media_type="text/javascript; charset=utf-8")
    if name not in _ASSETS:
        raise NotFoundError(f"the documentation has no {name}", hint="start at /docs")
    return FileResponse(_bundle() / name, media_type=_ASSETS[name], headers={"Cache-Control": "private, max-age=86400"})


@cache
def _bundle() -> Path:
    """Return where the package keeps its assets: a folder named after its version."""
    package = files("swagger_ui_bundle") / "vendor"
    return next(Path(str(folder)) for folder in package.iterdir() if folder.name.startswith("swagger-ui-"))
