"""A fleet in, its ASGI application out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from prony import __version__
from prony.server import pages
from prony.server.edge import Edge
from prony.server.gate import Gate
from prony.server.metrics import Metrics
from prony.server.openapi import document
from prony.server.problems import http_problem
from prony.server.routes import access, agents, experiments, fleet, jobs, leases
from prony.server.waiting import Waits

if TYPE_CHECKING:
    from prony.app.fleet import Fleet

# Routes are tried in this order: what agents ask a thousand times a second comes first.
_ROUTERS = (leases.router, agents.router, jobs.router, experiments.router, fleet.router, access.router, pages.router)


class Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return document(self)


def create_app(fleet: Fleet, *, open_to_all: bool) -> FastAPI:
    """Return the server of a fleet that was started; `open_to_all`: only this machine can reach it.

    Its `state.waits` are the requests that wait: whoever runs it closes them before it goes.
    """
    app = Application(
        title="Prony", version=__version__, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    gate, metrics = Gate(fleet.access, is_open=open_to_all), Metrics(fleet)
    app.state.fleet = fleet
    app.state.gate = gate
    app.state.metrics = metrics
    app.state.waits = Waits()
    # Not included: a router within a router is searched again for every request.
    app.router.routes = [route for router in _ROUTERS for route in router.routes]
    app.add_exception_handler(HTTPException, http_problem)
    app.add_middleware(Edge, gate=gate, metrics=metrics)
    return app
