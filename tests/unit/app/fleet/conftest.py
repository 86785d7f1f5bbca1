"""A fleet for each test: on SQLite, and by `make test-slow` on PostgreSQL too.

What differs between them, the SQL, is tried on both by the tests of the store; several servers share a PostgreSQL here
in every run.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from prony.store.home import Home
from servers.receiver import Receiver, receiver
from servers.shared import Shared

from .fleet_fixture import FleetFixture, SetClock, open_fleet

_EMPTIED = (
    "experiment",
    "schedule",
    "alarm",
    "agent",
    "creation",
    "deletion",
    "token",
    "audit",
    "calibration",
    "series",
    "confirmation",
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def there() -> Iterator[Receiver]:
    """Somebody who listens to what alarms tell."""
    with receiver() as made:
        yield made


@pytest.fixture(scope="session")
def lasting_url(postgres: Shared) -> Iterator[str]:
    """One database on PostgreSQL for all tests of this folder, which empty it before they begin."""
    name = postgres.create_migrated()
    yield postgres.url_of(name)
    postgres.drop(name)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").create()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, home: Home) -> str:
    """A database without anything in it, of the home's own or on PostgreSQL."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), home.database)
        return ""
    return str(request.getfixturevalue("shared_url"))


@pytest.fixture
def shared_url(lasting_url: str) -> str:
    """The same on PostgreSQL only, where several servers may use it."""
    emptied(lasting_url)
    return lasting_url


def emptied(url: str) -> None:
    """Take everything out of a database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for table in _EMPTIED:
            connection.execute(f'DELETE FROM "{table}"'.encode())


@pytest.fixture
async def local(home: Home, migrated_file: Path) -> AsyncIterator[FleetFixture]:
    """A fleet on SQLite only, for what no database has a part in."""
    shutil.copy(migrated_file, home.database)
    async with open_fleet(home) as made:
        yield made


@pytest.fixture
async def fleet_fixture(home: Home, url: str) -> AsyncIterator[FleetFixture]:
    async with open_fleet(home, url) as made:
        yield made


@pytest.fixture
async def pair(home: Home, shared_url: str) -> AsyncIterator[tuple[FleetFixture, FleetFixture]]:
    """Two servers on one database."""
    clock = SetClock()
    async with open_fleet(home, shared_url, clock=clock) as one, open_fleet(home, shared_url, clock=clock) as two:
        yield one, two
