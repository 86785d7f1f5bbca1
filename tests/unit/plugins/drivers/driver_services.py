"""Run one of Prony's services during a test, or skip where its program is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.ports.driver import Endpoint
from prony.ports.service import Service
from prony.runner.services.host import Wish, start_service
from servers.packaged import program

_PROGRAMS = {"seaweedfs": "weed", "chroma": "chroma"}


@contextmanager
def running(service: Service, folder: Path) -> Iterator[Endpoint]:
    """Start it, with what it says in the folder."""
    options = service.Options(program=program(_PROGRAMS[service.name]))
    with start_service(service, options, Wish(folder / "log")) as found:
        yield found.endpoint
