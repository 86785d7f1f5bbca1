"""A canned server, and a client that never really waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from prony.client import Client
from servers.canned import Canned, canned


@pytest.fixture
def server() -> Iterator[Canned]:
    with canned() as found:
        yield found


@pytest.fixture
def pauses() -> list[float]:
    """How long the client would have waited, time after time."""
    return []


@pytest.fixture
def client(server: Canned, pauses: list[float]) -> Iterator[Client]:
    with Client(server.url, "secret", timeout_s=60, sleep=pauses.append) as made:
        yield made
