"""Operations from many tasks in, each one's answer out: those that wait together share one durable transaction.

A commit that reaches the disk costs far more than the statements in it. One thread does all the writing of a process,
and takes as many operations into a transaction as have gathered while the last one was committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from prony.errors import PronyError, StoreError
from prony.store.database import translated

T = TypeVar("T")
Operation = Callable[["Desk"], T]
_MOST_TOGETHER = 200


@dataclass(frozen=True)
class Note:
    """Something that others want to know once it is committed."""

    topic: str
    key: str
    count: int = 1


@dataclass
class Desk:
    """An open transaction, and the notes to send when it is committed."""

    connection: Connection
    notes: list[Note] = field(default_factory=list)

    def tell(self, topic: str, key: str, count: int = 1) -> None:
        self.notes.append(Note(topic, key, count))


@dataclass(frozen=True)
class _Wish:
    operation: Operation[Any]
    answer: Future[Any]


class Writer:
    """An operation may be carried out twice, the first time in vain: it must change nothing but the database."""

    def __init__(
        self,
        engine: Engine,
        *,
        before_commit: Callable[[Connection, Sequence[Note]], None] = lambda *_: None,
        after_commit: Callable[[Sequence[Note]], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._before_commit = before_commit
        self._after_commit = after_commit
        self._wishes: SimpleQueue[_Wish | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="prony-writer", daemon=True)
        self._thread.start()

    @property
    def lives(self) -> bool:
        return self._thread.is_alive()

    @property
    def backlog(self) -> int:
        return self._wishes.qsize()

    def submit(self, operation: Operation[T]) -> Future[T]:
        """Have the operation carried out; its answer comes when it is on the disk."""
        answer: Future[T] = Future()
        if self._closed:
            answer.set_exception(StoreError("the store is closed", hint="the server is going down"))
        else:
            self._wishes.put(_Wish(operation, answer))
        return answer

    def close(self) -> None:
        """Do what was asked for already, and end."""
        self._closed = True
        self._wishes.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            wishes, ending = self._gathered()
            if wishes:
                self._fulfil(wishes)
            if ending:
                self._disconnect()
                return

    def _gathered(self) -> tuple[list[_Wish], bool]:
        first = self._wishes.get()
        if first is None:
            return [], True
        wishes = [first]
        while len(wishes) < _MOST_TOGETHER:
            try:
                wish = self._wishes.get_nowait()
            except Empty:
                break
            if wish is None:
                return wishes, True
            wishes.append(wish)
        return wishes, False

    def _fulfil(self, wishes: Sequence[_Wish]) -> None:
        """Carry out all in one transaction; where one of them fails, each in its own."""
        wishes = [wish for wish in wishes if wish.answer.set_running_or_notify_cancel()]
        try:
            answers = self._transact(wishes)
        except Exception as exc:  # noqa: BLE001 - whatever it is belongs to whoever asked, and this thread must live
            if len(wishes) == 1:
                wishes[0].answer.set_exception(exc)
                return
            for wish in wishes:
                self._alone(wish)
            return
        for wish, answer in zip(wishes, answers, strict=True):
            wish.answer.set_result(answer)

    def _alone(self, wish: _Wish) -> None:
        try:
            answers = self._transact([wish])
        except Exception as exc:  # noqa: BLE001 - as above
            wish.answer.set_exception(exc)
        else:
            wish.answer.set_result(answers[0])

    def _transact(self, wishes: Sequence[_Wish]) -> list[Any]:
        try:
            with translated(self._engine):
                desk = Desk(self._connected())
                with desk.connection.begin():
                    answers = [wish.operation(desk) for wish in wishes]
                    if desk.notes:
                        self._before_commit(desk.connection, desk.notes)
        except StoreError:
            self._disconnect()
            raise
        if desk.notes:
            self._after_commit(desk.notes)
        return answers

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._engine.execution_options(writes=True).connect()
            if self._engine.dialect.name == "sqlite":
                driver = connection.connection.driver_connection
                if driver is not None:  # an answer is given when it would survive a power cut, not before
                    driver.execute("PRAGMA synchronous = FULL")
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        """Let go of a connection that failed; the next operation tries a fresh one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError, PronyError):
                connection.close()
