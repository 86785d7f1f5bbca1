"""A home or a URL in, an engine out: connections set up, transactions that wait their turn, errors translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, StatementError

from prony.errors import PronyError, StoreError
from prony.store.home import Home

_BUSY_MS = 10_000
# What the database says, and what a person can do about it.
_HINTS = (
    ("locked", "another process has held the database for over 10 s; try again when it is done"),
    ("full", "free some space on this disk, then try again; what was stored before is unharmed"),
    ("disk i/o", "is the disk full or at its quota? what was stored before is unharmed"),
    ("readonly", "may you write to this folder? set PRONY_HOME to one that you may"),
    ("unable to open", "may you write to this folder? set PRONY_HOME to one that you may"),
    ("not a database", "move the file away: the result folders beside it can be imported into a new one"),
    ("malformed", "move the file away: the result folders beside it can be imported into a new one"),
)


def connected(home: Home, url: str = "") -> Engine:
    """Return an engine for `url`, or for the home's own SQLite file. Nothing is opened yet."""
    try:
        engine = create_engine(make_url(url) if url else URL.create("sqlite", database=str(home.database)))
    except ArgumentError as exc:
        raise StoreError(f"{url!r} names no database", hint="as in postgresql+psycopg://host/name") from exc
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One consistent view of the database."""
    with translated(engine), engine.begin() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction: all of the block is kept, or nothing of it."""
    with translated(engine), engine.execution_options(writes=True).begin() as connection:
        yield connection


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turn what the database's driver raises into a StoreError that says what to do."""
    where = engine.url.database if engine.dialect.name == "sqlite" else engine.url.host
    try:
        yield
    except StatementError as exc:
        if isinstance(exc.orig, PronyError):
            raise exc.orig from exc  # our own refusal of a value, wrapped on its way
        said = str(exc.orig)
        raise StoreError(f"the database {where} says: {said}", hint=hint_for(said)) from exc
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        place = ".".join(str(part) for part in (exc.title, *first["loc"]))
        hint = "was it made by another version? the result folders beside it can be imported into a new one"
        raise StoreError(
            f"the database {where} holds a row that cannot be read: {place}: {first['msg']}", hint=hint
        ) from exc


def hint_for(said: str) -> str:
    """Return what a person can do about a database's complaint, or nothing where we do not know."""
    return next((hint for key, hint in _HINTS if key in said.lower()), "")


def _prepare(driver_connection: Any, _record: Any) -> None:
    # The driver's own transactions begin too late for a read to belong to the write that follows: `_begin` does it.
    driver_connection.isolation_level = None
    for pragma in ("foreign_keys = ON", f"busy_timeout = {_BUSY_MS}", "synchronous = NORMAL"):
        driver_connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A writer takes its place at once: a reader that turns writer in mid-transaction fails without waiting.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
