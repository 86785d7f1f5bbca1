"""The queue under anything that can happen to it, in any order, on both databases and with two servers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from prony.store.home import Home

from .conftest import emptied
from .machine import QueueMachine

# The same few each time. Who changes the queue lets it have hundreds, and others each time (derandomize=False).
SETTINGS = settings(
    max_examples=5,
    derandomize=True,
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def run(make: Callable[[], QueueMachine]) -> None:
    run_state_machine_as_test(make, settings=SETTINGS)  # type: ignore[arg-type]


def homes(tmp_path: Path) -> Callable[[], Home]:
    numbers = count()
    return lambda: Home(tmp_path / f"home-{next(numbers)}").create()


def test_whatever_happens_to_one_server_on_sqlite(tmp_path: Path, migrated_file: Path) -> None:
    fresh = homes(tmp_path)

    def make() -> QueueMachine:
        home = fresh()
        shutil.copy(migrated_file, home.database)
        return QueueMachine(home, "", 1)

    run(make)


@pytest.mark.slow
def test_whatever_happens_to_two_servers_on_postgresql(tmp_path: Path, lasting_url: str) -> None:
    fresh = homes(tmp_path)

    def make() -> QueueMachine:
        emptied(lasting_url)
        return QueueMachine(fresh(), lasting_url, 2)

    run(make)
