"""Open the database of a home or a URL: connections, transactions and error translation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, Row, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from prony.errors import InputError, PronyError, StoreError
from prony.model.validation_words import describe_invalid
from prony.store.home import Home

# The types that others name come from here: nothing but `store/` imports SQLAlchemy.
__all__ = [
    "Connection",
    "Engine",
    "Row",
    "begin",
    "connect_database",
    "hint_for",
    "is_answering",
    "name_of",
    "reading",
    "translate_errors",
    "was_in_the_way",
    "writing",
]
_BUSY_MS = 10_000
# What PostgreSQL says when another server was in the way: a deadlock, an order that cannot be, a key that was free.
_IN_THE_WAY = ("40P01", "40001", "23505")
# What the database says, and what a person can do about it.
_HINTS = (
    ("locked", "another process has held the database for over 10 s; try again when it is done"),
    ("full", "free some space on this disk, then try again; what was stored before is not damaged"),
    ("disk i/o", "check whether the disk is full or at its quota; what was stored before is not damaged"),
    ("readonly", "check that you may write to this folder, or set PRONY_HOME to another one"),
    ("unable to open", "check that you may write to this folder, or set PRONY_HOME to another one"),
    ("not a database", "move the file away: the result folders beside it can be imported into a new one"),
    ("malformed", "move the file away: the result folders beside it can be imported into a new one"),
)


def connect_database(home: Home, url: str = "") -> Engine:
    """Return an engine for `url`, or for the home's own SQLite file. Nothing is opened yet."""
    address = _address(url) if url else URL.create("sqlite", database=str(home.database))
    if address.get_backend_name() != "sqlite":
        from prony.store.postgres import server_engine

        return server_engine(address)
    engine = create_engine(address.set(drivername="sqlite"))
    event.listen(engine, "connect", _prepare)
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One consistent view of the database."""
    if engine.dialect.name == "postgresql":
        # By itself it would show every statement the newest rows.
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with translate_errors(engine), engine.connect() as connection, begin(connection, writes=False):
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction: all of the block is kept, or nothing of it."""
    with translate_errors(engine), engine.connect() as connection, begin(connection, writes=True):
        yield connection


@contextmanager
def begin(connection: Connection, *, writes: bool) -> Iterator[None]:
    """A transaction on an open connection: committed at the end of the block, undone where it raises.

    SQLite is told here and not by a listener of SQLAlchemy: one listener makes every statement look for more of them.
    """
    with connection.begin():
        if connection.dialect.name == "sqlite":
            # A writer takes its place at once: a reader that turns writer in mid-transaction fails without waiting.
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        yield


@contextmanager
def translate_errors(engine: Engine) -> Iterator[None]:
    """Turn what the database's driver raises into an error of ours that says what to do."""
    try:
        yield
    except StatementError as exc:
        if isinstance(exc.orig, PronyError):
            raise exc.orig from exc  # our own refusal of a value, wrapped on its way
        raise _translation(engine, exc) from exc
    except PoolTimeoutError as exc:
        hint = "too many requests at once: try again in a moment"
        raise StoreError(f"no connection to {name_of(engine)} became free", hint=hint) from exc
    except (OverflowError, UnicodeEncodeError) as exc:
        raise InputError(
            f"the database cannot store a value: {exc}",
            hint="a number or text of the input is too large, or is not Unicode",
        ) from exc
    except ValidationError as exc:
        hint = "was it made by another version? the result folders beside it can be imported into a new one"
        raise StoreError(
            f"{name_of(engine)} holds a row that cannot be read: {exc.title}: {describe_invalid(exc)}", hint=hint
        ) from exc


def is_answering(connection: Connection) -> bool:
    """Ask the database the simplest of questions."""
    return bool(connection.execute(text("SELECT 1")).scalar())


def was_in_the_way(error: StoreError) -> bool:
    """Was it undone because of what another server did in the same instant? Then it goes well, or is refused, now."""
    cause = error.__cause__
    return isinstance(cause, DBAPIError) and getattr(cause.orig, "sqlstate", None) in _IN_THE_WAY


def name_of(engine: Engine) -> str:
    """Return what to call a database in a message: where it is, and no secret of its URL."""
    if engine.dialect.name == "sqlite":
        return f"the database {engine.url.database}"
    from prony.store.postgres import place_of

    return f"the database {place_of(engine.url)}"


def _translation(engine: Engine, error: StatementError) -> PronyError:
    said = " ".join(str(error.orig).split())
    if engine.url.password:
        said = said.replace(str(engine.url.password), "***")
    if isinstance(error, DataError):
        return InputError(
            f"the database cannot store a value: {said}",
            hint="a number or text of the recipe or the result is too large: make it smaller",
        )
    hint = hint_for(said)
    if engine.dialect.name != "sqlite" and isinstance(error, DBAPIError):
        from prony.store.postgres import server_hint

        hint = server_hint(error)
    return StoreError(f"{name_of(engine)} says: {said}", hint=hint)


def _address(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        # Not chained, and not as it was given: what cannot be understood may hold a password anywhere before the `@`.
        shown = re.sub(r"//.*@", "//***@", url)
        hint = "as in postgresql://user@host/name"
        raise StoreError(f"{shown!r} is not the URL of a database", hint=hint) from None


def hint_for(said: str) -> str:
    """Return what a person can do about a database's complaint, or nothing where we do not know."""
    return next((hint for key, hint in _HINTS if key in said.lower()), "")


def _prepare(driver_connection: Any, _record: Any) -> None:
    # The driver's own transactions begin too late for a read to belong to the write that follows: `begin` does it.
    driver_connection.isolation_level = None
    for pragma in ("foreign_keys = ON", f"busy_timeout = {_BUSY_MS}", "synchronous = NORMAL"):
        driver_connection.execute(f"PRAGMA {pragma}")
