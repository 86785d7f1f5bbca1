"""Write to the database in one thread, with waiting operations sharing a transaction.

A commit that reaches the disk costs far more than the statements in it. One thread does all the writing of a process,
and takes as many operations into a transaction as have gathered while the last one was committed.
"""

from __future__ import annotations

import logging
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
from prony.store.database import begin, translate_errors

T = TypeVar("T")
Operation = Callable[["Transaction"], T]
_MOST_TOGETHER = 200
_LOG = logging.getLogger(__name__)
_UNCERTAIN = "the connection was lost during a commit, which may have been done: check before you try again"


@dataclass(frozen=True)
class ChangeNote:
    """Something that others want to know once it is committed."""

    topic: str
    key: str
    count: int = 1


@dataclass
class Transaction:
    """An open transaction, and the notes to send when it is committed.

    `dry` are lots of which it found that nothing waits, so that not everyone in it looks again.
    """

    connection: Connection
    notes: list[ChangeNote] = field(default_factory=list)
    dry: set[str] = field(default_factory=set)

    def publish(self, topic: str, key: str, count: int = 1) -> None:
        self.notes.append(ChangeNote(topic, key, count))


@dataclass(frozen=True)
class _Request:
    operation: Operation[Any]
    answer: Future[Any]


class LostError(StoreError):
    """The connection was lost. Nothing was done, unless `may_be_done`: then it was lost in the middle of a commit."""

    def __init__(self, message: str, *, hint: str = "", may_be_done: bool = False) -> None:
        super().__init__(message, hint=_UNCERTAIN if may_be_done else hint)
        self.may_be_done = may_be_done


class Writer:
    """An operation may be carried out twice, the first time in vain: it must change nothing but the database."""

    def __init__(
        self,
        engine: Engine,
        *,
        before_commit: Callable[[Connection, Sequence[ChangeNote]], None] = lambda *_: None,
        after_commit: Callable[[Sequence[ChangeNote]], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._before_commit = before_commit
        self._after_commit = after_commit
        self._wishes: SimpleQueue[_Request | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self._door = threading.Lock()
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
        with self._door:  # nothing may be put in after the sign that nothing more comes
            if not self._closed:
                self._wishes.put(_Request(operation, answer))
                return answer
        answer.set_exception(StoreError("the store is closed", hint="the server is shutting down"))
        return answer

    def close(self) -> None:
        """Do what was asked for already, and end."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._wishes.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            wishes, ending = self._gather()
            if wishes:
                self._fulfil(wishes)
            if ending:
                self._disconnect()
                return

    def _gather(self) -> tuple[list[_Request], bool]:
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

    def _fulfil(self, wishes: Sequence[_Request]) -> None:
        """Carry out all in one transaction; where one of them fails, each in its own."""
        wishes = [wish for wish in wishes if wish.answer.set_running_or_notify_cancel()]
        try:
            answers, notes = self._transact(wishes)
        except LostError as exc:
            for wish in wishes:
                wish.answer.set_exception(exc)
        except Exception as exc:  # noqa: BLE001 - whatever it is belongs to whoever asked, and this thread must live
            if len(wishes) == 1:
                wishes[0].answer.set_exception(exc)
                return
            for wish in wishes:
                self._alone(wish)
        else:
            self._tell(notes)
            for wish, answer in zip(wishes, answers, strict=True):
                wish.answer.set_result(answer)

    def _alone(self, wish: _Request) -> None:
        try:
            answers, notes = self._transact([wish])
        except Exception as exc:  # noqa: BLE001 - as above
            wish.answer.set_exception(exc)
        else:
            self._tell(notes)
            wish.answer.set_result(answers[0])

    def _transact(self, wishes: Sequence[_Request]) -> tuple[list[Any], list[ChangeNote]]:
        """Commit the wishes together. A connection that was lost before the commit is replaced once, unseen."""
        if self._connection is not None:
            try:
                return self._attempt(wishes)
            except LostError as exc:
                if exc.may_be_done:
                    raise
        return self._attempt(wishes)

    def _attempt(self, wishes: Sequence[_Request]) -> tuple[list[Any], list[ChangeNote]]:
        transaction, is_committing = None, False
        try:
            with translate_errors(self._engine):
                transaction = Transaction(self._connect())
                with begin(transaction.connection, writes=True):
                    answers = [wish.operation(transaction) for wish in wishes]
                    if transaction.notes:
                        self._before_commit(transaction.connection, transaction.notes)
                    is_committing = True
        except StoreError as exc:
            is_lost = transaction is None or transaction.connection.invalidated
            self._disconnect()
            if is_lost:
                raise LostError(exc.message, hint=exc.hint, may_be_done=is_committing) from exc
            raise
        return answers, transaction.notes

    def _tell(self, notes: Sequence[ChangeNote]) -> None:
        if notes:
            try:
                self._after_commit(notes)
            except Exception:  # noqa: BLE001 - what is committed stays so, whoever could not be told of it
                _LOG.exception("watchers of a commit failed")

    def _connect(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect()
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
