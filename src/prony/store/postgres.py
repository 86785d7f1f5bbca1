"""Open a PostgreSQL database: driver, session settings and detection of dead connections."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from prony.errors import CapacityError, StoreError

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.adapt import Dumper

_DRIVER = "postgresql+psycopg"
# How libpq connects, where the URL does not say it otherwise. A server that is gone without a word (a cut cable, a
# machine that lost its power) is noticed within half a minute.
_CONNECTING = {
    "application_name": "prony",
    "client_encoding": "utf8",
    "connect_timeout": "10",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
# A process that froze in mid-transaction must not keep the others from their rows for ever.
_SESSION = {"TimeZone": "UTC", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s"}
_POOL_SIZE, _POOL_MORE, _POOL_WAIT_S = 5, 15, 15
# The SQL state or the words of an error, and what a person can do about it.
_HINTS = (
    (("28p01", "28000", "password authentication failed", "no password supplied", "no pg_hba.conf entry"),
     "check the user and the password in the database's URL, and that the server lets this machine in"),
    (("3d000", "fatal: database"), "make it first: createdb --encoding=UTF8 NAME"),
    (("53300", "too many clients", "remaining connection slots"),
     f"raise PostgreSQL's max_connections: each server process opens up to {_POOL_SIZE + _POOL_MORE + 2}"),
    (("53100", "no space left"), "free some space on the database's disk; what was stored before is not damaged"),
    (("55p03",), "another process has held a lock for over 10 s; try again when it is done"),
    (("40p01", "40001"), "two transactions conflicted and this one was rolled back: try again"),
    (("25006",), "this database is read-only, such as a standby: use the URL of the primary"),
    (("42501",), "let the user own the database: ALTER DATABASE name OWNER TO user"),
)  # fmt: skip


def server_engine(url: URL) -> Engine:
    """Return an engine; nothing is opened yet."""
    if url.drivername not in ("postgres", "postgresql", _DRIVER):
        raise StoreError(f"Prony does not support {url.drivername}", hint="as in postgresql://user@host/name")
    asked = {name: value for name, value in _CONNECTING.items() if name not in url.query}
    try:
        engine = create_engine(
            url.set(drivername=_DRIVER),
            connect_args=asked,
            pool_pre_ping=True,
            pool_size=_POOL_SIZE,
            max_overflow=_POOL_MORE,
            pool_timeout=_POOL_WAIT_S,
            hide_parameters=True,
        )
    except ImportError as exc:
        raise CapacityError(
            "PostgreSQL needs the package psycopg", hint="pip install 'prony[postgres]'", code="missing_package"
        ) from exc
    event.listen(engine, "connect", _prepare)
    return engine


def place_of(url: URL) -> str:
    """Return what to call the database in a message: never with its password."""
    host = url.host or ", ".join(_texts(url.query.get("host", ""))) or "this machine"
    return f"{url.database or url.username or 'postgres'} on {host}{f':{url.port}' if url.port else ''}"


def server_hint(error: DBAPIError) -> str:
    """Return what a person can do about what the server, or the way to it, complains of."""
    said = " ".join(f"{getattr(error.orig, 'sqlstate', None) or ''} {error.orig}".lower().split())
    for keys, hint in _HINTS:
        if any(key in said for key in keys):
            return hint
    if error.connection_invalidated or isinstance(error, OperationalError | InterfaceError):
        return "is PostgreSQL running, and can it be reached from here? what was confirmed before is not lost"
    return ""


def _prepare(connection: Connection[Any], _record: Any) -> None:
    connection.adapters.register_dumper(str, _text_dumper())
    settings = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _SESSION.items())
    connection.autocommit = True
    connection.execute(f"SELECT {settings}".encode())
    connection.autocommit = False


@cache
def _text_dumper() -> type[Dumper]:
    from psycopg.adapt import Dumper

    class TextDumper(Dumper):
        """SQLite keeps every character, PostgreSQL all but NUL: that becomes the character for what cannot be shown."""

        def dump(self, obj: str) -> bytes:
            return obj.replace("\0", "\ufffd").encode()

    return TextDumper


def _texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
