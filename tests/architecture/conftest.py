"""What every test of the architecture shares."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def parsed_sources_out_of_the_way() -> Iterator[None]:
    """Have no collection look through the parsed sources, which stay: it would take seconds each time."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
