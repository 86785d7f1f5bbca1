"""A canned server that the commands are told of by the environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers.canned import Canned, canned


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Canned]:
    with canned() as found:
        monkeypatch.setenv("PRONY_SERVER", found.url)
        yield found
