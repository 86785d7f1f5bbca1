"""Servers for the tests of this folder: one that everybody may ask, and one that asks for tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .house import House, served


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("open")) as found:
        yield found


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("closed"), is_open=False) as found:
        yield found
