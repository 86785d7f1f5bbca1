"""The home's own database, opened without a server; and the account of whoever does that."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from prony.store.database import Engine, connect_database
from prony.store.home import home
from prony.store.schema import upgrade


@contextmanager
def database(url: str = "") -> Iterator[Engine]:
    """The home's own database, or the one at `url`, with the tables of this Prony."""
    place = home().create()
    engine = connect_database(place, url)
    try:
        upgrade(engine, place)
        yield engine
    finally:
        engine.dispose()


def whoever() -> str:
    """Return the account that calls this."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name, as in some containers
        return "unknown"
