"""Build the ASGI application of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from prony import __version__
from prony.app.login import Logins
from prony.server import pages
from prony.server.auth import Authenticator
from prony.server.forwarded import Network, Proxies
from prony.server.login import LoginPages
from prony.server.long_poll import Waits
from prony.server.metrics import Metrics
from prony.server.middleware import Edge
from prony.server.openapi import document
from prony.server.operation import Operation
from prony.server.router import Directory
from prony.server.routes import (
    access,
    agents,
    alarms,
    comparison,
    experiments,
    fleet,
    glance,
    history,
    imports,
    jobs,
    leases,
    pictures,
    recipes,
    schedules,
    scripts,
    sweeps,
    targets,
)

if TYPE_CHECKING:
    from prony.app.fleet.fleet import Fleet

_PARTS = (
    experiments,
    comparison,
    sweeps,
    jobs,
    pictures,
    recipes,
    glance,
    imports,
    scripts,
    schedules,
    alarms,
    agents,
    targets,
    leases,
    history,
    fleet,
    access,
    pages,
)


class Application(FastAPI):
    """FastAPI describes the operations; a request takes a way of its own to them, which is many times shorter."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await self.state.edge(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        return document(self)


def create_app(
    fleet: Fleet, *, open_to_all: bool, owner_token: str = "", proxies: Sequence[Network] = (), public_url: str = ""
) -> FastAPI:
    """Return the server of a fleet that was started; `open_to_all`: it asks nobody who they are.

    It proves to whoever asks that it has the `owner_token`. `proxies` are those whose word on addresses is taken.
    Links that log in lead to the `public_url`, where it is known.
    Its `state.waits` are the requests that wait: whoever runs it closes them before it goes.
    """
    app = Application(title="Prony", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    waits = Waits()
    gate, metrics = Authenticator(fleet.access, is_open=open_to_all), Metrics(fleet, waits)
    app.state.fleet = fleet
    app.state.gate = gate
    app.state.logins = Logins(fleet.access, fleet.context.clock, public_url=public_url)
    app.state.owner_token = owner_token
    app.state.metrics = metrics
    app.state.waits = waits
    operations = [route for part in _PARTS for route in part.router.routes if isinstance(route, Operation)]
    app.router.routes = list(operations)
    login = LoginPages(fleet, gate, app.state.logins)
    app.state.edge = Edge(gate, metrics, Directory(operations), login=login, proxies=Proxies(proxies))
    return app
