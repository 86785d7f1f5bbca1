"""Notes between servers that share a PostgreSQL database: sent inside the transaction, heard by every other server."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, text

from prony.store.writer import Note

if TYPE_CHECKING:
    import psycopg

CHANNEL = "prony"
_MOST_BYTES = 7000  # PostgreSQL takes less than 8000
_PAUSE_S = 1.0
_SEND = text("SELECT pg_notify(:channel, :payload)")


def send_notes(connection: Connection, sender: str, notes: Sequence[Note]) -> None:
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
    """A thread with a connection of its own that hears what other servers committed; it reconnects for ever."""

    def __init__(self, engine: Engine, hear: Callable[[Sequence[Note]], None]) -> None:
        self.sender = secrets.token_hex(8)
        self._engine = engine
        self._hear = hear
        self._ended = threading.Event()
        self._connection: psycopg.Connection | None = None
        self._thread = threading.Thread(target=self._work, name="prony-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=5)

    def _work(self) -> None:
        import psycopg

        while not self._ended.is_set():
            with suppress(psycopg.Error):
                self._listen()
            self._ended.wait(_PAUSE_S)

    def _listen(self) -> None:
        import psycopg

        url = self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            while not self._ended.is_set():
                for heard in connection.notifies(timeout=1.0):
                    self._receive(heard.payload)

    def _receive(self, payload: str) -> None:
        sender, batch = json.loads(payload)
        if sender != self.sender:
            self._hear([Note(topic, key, count) for topic, key, count in batch])
