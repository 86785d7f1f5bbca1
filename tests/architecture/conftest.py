"""What every test of the architecture shares."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

Document = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def parsed_sources_out_of_the_way() -> Iterator[None]:
    """Have no collection look through the parsed sources, which stay: it would take seconds each time."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def openapi(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Return what the server says of itself."""
    from prony.app.fleet.fleet import Fleet
    from prony.server.app import create_app
    from prony.server.openapi import document
    from prony.store.home import Home

    fleet = Fleet.open(Home(tmp_path_factory.mktemp("home")))
    return document(create_app(fleet, open_to_all=True))


@pytest.fixture(scope="session")
def api(openapi: Document) -> dict[str, tuple[str, str, Document]]:
    """Return every operation of the API by its id: method, path, and what its own document says of it."""
    paths = openapi["paths"]
    return {
        operation["operationId"]: (method.upper(), path, operation)
        for path, operations in paths.items()
        if path.startswith("/api/")
        for method, operation in operations.items()
    }
