"""Notes between servers that share a PostgreSQL database: sent inside the transaction, heard by every other server."""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from prony.store.writer import ChangeNote

if TYPE_CHECKING:
    import psycopg

CHANNEL = "prony"
_MOST_BYTES = 7000  # PostgreSQL takes less than 8000
_PAUSE_S = 1.0
# A server tells that it is there this often, and is thought gone when nothing was heard of it for so long.
_BEAT_S = 3.0
_SILENCE_S = 10.0
_SEND = text("SELECT pg_notify(:channel, :payload)")


def send_notes(connection: Connection, sender: str, notes: Sequence[ChangeNote]) -> None:
    """Send notes with the transaction: they are heard when it is committed, and never if it is not."""
    batch: list[list[object]] = []
    size = 0
    for note in notes:
        item: list[object] = [note.topic, note.key, note.count]
        length = len(json.dumps(item))
        if length > _MOST_BYTES:
            continue  # nothing that must be heard is as long
        if size + length > _MOST_BYTES:
            _send(connection, sender, batch)
            batch, size = [], 0
        batch.append(item)
        size += length + 1
    if batch:
        _send(connection, sender, batch)


def _send(connection: Connection, sender: str, batch: list[list[object]]) -> None:
    connection.execute(_SEND, {"channel": CHANNEL, "payload": json.dumps([sender, batch])})


class Listener:
    """A thread with a connection of its own that hears what other servers committed; it reconnects for ever.

    Each time that it begins to hear it says so, as a note `anew`. Servers tell each other that they are there, so that
    one that is alone need not send its notes: each costs a round trip and PostgreSQL's one lock for notifications.
    """

    def __init__(self, engine: Engine, hear: Callable[[Sequence[ChangeNote]], None]) -> None:
        self.sender = secrets.token_hex(8)
        self._engine = engine
        self._hear = hear
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._connection: psycopg.Connection | None = None
        self._others_until = math.inf  # monotonic; not until it has listened for a while may it think itself alone
        self._thread = threading.Thread(target=self._work, name="prony-listener", daemon=True)
        self._thread.start()

    @property
    def is_alone(self) -> bool:
        """Is it certain that no other server hears? Who begins to hear looks at the database after that."""
        return time.monotonic() > self._others_until

    def close(self) -> None:
        self._ended.set()
        with self._lock:
            if self._connection is not None:
                _hang_up(self._connection)
        self._thread.join(timeout=5)

    def _work(self) -> None:
        import psycopg

        while not self._ended.is_set():
            with suppress(psycopg.Error, DBAPIError, PoolTimeoutError):
                self._listen()
            self._ended.wait(_PAUSE_S)

    def _listen(self) -> None:
        with self._connect() as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            self._beat(connection)
            self._hear([ChangeNote("anew", "")])  # what was told before was not heard
            self._others_until = time.monotonic() + _BEAT_S + _PAUSE_S  # by then the others have told
            beat_at = time.monotonic() + _BEAT_S
            while not self._ended.is_set():
                for heard in connection.notifies(timeout=_PAUSE_S):
                    self._receive(heard.payload)
                if time.monotonic() >= beat_at:
                    self._beat(connection)
                    beat_at = time.monotonic() + _BEAT_S

    def _beat(self, connection: psycopg.Connection) -> None:
        connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, json.dumps([self.sender, []])))

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection]:
        """A connection like all others of the engine, and not of its pool."""
        pooled = self._engine.raw_connection()
        connection = cast("psycopg.Connection", pooled.driver_connection)
        pooled.detach()
        with closing(connection):
            connection.autocommit = True
            with self._lock:
                self._connection = connection
            try:
                yield connection
            finally:
                self._others_until = math.inf  # it does not hear, so it cannot know
                with self._lock:
                    self._connection = None

    def _receive(self, payload: str) -> None:
        try:
            sender, batch = json.loads(payload)
            notes = [ChangeNote(str(topic), str(key), int(count)) for topic, key, count in batch]
        except (ValueError, TypeError):  # somebody else's, on a channel of the same name
            return
        if sender != self.sender:
            self._others_until = time.monotonic() + _SILENCE_S
            self._hear(notes)


def _hang_up(connection: psycopg.Connection) -> None:
    """End the wait of a thread for what may never come."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
