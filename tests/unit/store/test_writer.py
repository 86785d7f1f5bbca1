"""The one writer of a process: what waits together is committed together, and each is answered for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, insert, select, text
from sqlalchemy.pool import QueuePool

from prony.errors import ConflictError, InputError, StoreError
from prony.store import tables
from prony.store.database import connect_database, reading, writing
from prony.store.home import Home
from prony.store.schema import upgrade
from prony.store.store import Store
from prony.store.writer import ChangeNote, Transaction, Writer
from servers.postgres import Postgres
from servers.shared import Shared

WAIT_S = 120


@pytest.fixture
def writer(store: Store) -> Iterator[Writer]:
    made = Writer(store.engine)
    yield made
    made.close()


def keep(name: str) -> Callable[[Transaction], str]:
    """Return an operation that writes one row, tells of it, and answers with its name."""

    def operation(transaction: Transaction) -> str:
        transaction.connection.execute(insert(tables.deletion).values(experiment_id=name))
        transaction.publish("kept", name)
        return name.upper()

    return operation


def kept(engine: Engine) -> list[str]:
    query = select(tables.deletion.c.experiment_id).order_by(tables.deletion.c.experiment_id)
    with reading(engine) as connection:
        return list(connection.execute(query).scalars())


def refuse(transaction: Transaction) -> None:
    transaction.connection.execute(insert(tables.deletion).values(experiment_id="refused"))
    transaction.publish("kept", "refused")
    raise ConflictError("no")


@contextmanager
def kept_busy(writer: Writer) -> Iterator[None]:
    """Let the writer do nothing else during the block, so that it finds all that was submitted there at once."""
    begun, go_on = threading.Event(), threading.Event()

    def busy(_: Transaction) -> None:
        begun.set()
        go_on.wait(WAIT_S)

    first = writer.submit(busy)
    begun.wait(WAIT_S)
    yield
    go_on.set()
    first.result(WAIT_S)


def together(writer: Writer, *operations: Callable[[Transaction], Any]) -> list[Future[Any]]:
    with kept_busy(writer):
        futures = [writer.submit(operation) for operation in operations]
        assert writer.backlog == len(operations)
    return futures


def commits(engine: Engine) -> list[int]:
    """Return a list that grows with every commit."""
    seen: list[int] = []
    event.listen(engine, "commit", lambda _: seen.append(1))
    return seen


class TestAnswers:
    def test_an_answer_comes_when_the_row_is_there_for_all(self, store: Store, writer: Writer) -> None:
        assert writer.submit(keep("a")).result(WAIT_S) == "A"
        assert kept(store.engine) == ["a"]

    def test_what_waits_together_is_one_commit_and_each_gets_its_own_answer(self, store: Store, writer: Writer) -> None:
        writer.submit(keep("first")).result(WAIT_S)
        seen = commits(store.engine)
        futures = together(writer, *(keep(f"n{number}") for number in range(20)))
        assert [future.result(WAIT_S) for future in futures] == [f"N{number}" for number in range(20)]
        assert len(seen) == 2  # of the one that kept it busy, and of the twenty
        assert len(kept(store.engine)) == 21

    def test_one_sees_what_those_before_it_in_the_same_commit_did(self, writer: Writer) -> None:
        def look(transaction: Transaction) -> list[str]:
            return list(transaction.connection.execute(select(tables.deletion.c.experiment_id)).scalars())

        _, seen = together(writer, keep("a"), look)
        assert seen.result(WAIT_S) == ["a"]

    def test_many_threads_may_submit(self, store: Store, writer: Writer) -> None:
        answers: list[str] = []

        def work(thread: int) -> None:
            answers.extend(writer.submit(keep(f"t{thread}-{number}")).result(WAIT_S) for number in range(10))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(answers)) == len(kept(store.engine)) == 80

    def test_one_that_was_called_off_in_time_is_not_carried_out(self, store: Store, writer: Writer) -> None:
        with kept_busy(writer):
            unwanted, wanted = writer.submit(keep("unwanted")), writer.submit(keep("wanted"))
            assert unwanted.cancel()
        assert wanted.result(WAIT_S) == "WANTED"
        with pytest.raises(CancelledError):
            unwanted.result(WAIT_S)
        assert kept(store.engine) == ["wanted"]


class TestErrors:
    def test_the_error_of_one_is_its_own_and_the_others_are_done_once(self, store: Store, writer: Writer) -> None:
        one, bad, two = together(writer, keep("one"), refuse, keep("two"))
        assert (one.result(WAIT_S), two.result(WAIT_S)) == ("ONE", "TWO")
        with pytest.raises(ConflictError, match="no"):
            bad.result(WAIT_S)
        assert kept(store.engine) == ["one", "two"]

    def test_a_rule_of_the_database_that_one_breaks_does_not_hurt_the_others(
        self, store: Store, writer: Writer
    ) -> None:
        one, again, two = together(writer, keep("one"), keep("one"), keep("two"))
        assert (one.result(WAIT_S), two.result(WAIT_S)) == ("ONE", "TWO")
        with pytest.raises(StoreError, match="deletion"):
            again.result(WAIT_S)
        assert kept(store.engine) == ["one", "two"]

    def test_a_value_that_cannot_be_kept_is_the_askers_mistake_and_the_writer_goes_on(self, writer: Writer) -> None:
        with pytest.raises(InputError):
            writer.submit(keep("\ud800")).result(WAIT_S)
        assert writer.submit(keep("after")).result(WAIT_S) == "AFTER"

    def test_a_mistake_in_an_operation_reaches_who_asked_and_nobody_else(self, writer: Writer) -> None:
        bad, good = together(writer, lambda _: 1 // 0, keep("good"))
        with pytest.raises(ZeroDivisionError):
            bad.result(WAIT_S)
        assert good.result(WAIT_S) == "GOOD"
        assert writer.lives


class TestNotes:
    def test_they_are_told_when_everybody_can_see_what_they_tell_of(self, store: Store) -> None:
        seen: list[tuple[list[ChangeNote], list[str]]] = []
        writer = Writer(store.engine, after_commit=lambda notes: seen.append((list(notes), kept(store.engine))))
        for future in together(writer, keep("a"), keep("b")):
            future.result(WAIT_S)
        writer.close()
        assert seen == [([ChangeNote("kept", "a"), ChangeNote("kept", "b")], ["a", "b"])]

    def test_of_what_was_undone_nothing_is_told(self, store: Store) -> None:
        told: list[ChangeNote] = []
        writer = Writer(store.engine, after_commit=told.extend)
        together(writer, keep("a"), refuse, keep("b"))
        writer.close()
        assert told == [ChangeNote("kept", "a"), ChangeNote("kept", "b")]

    def test_before_the_commit_they_can_be_sent_in_the_same_transaction(self, store: Store) -> None:
        def send(connection: Connection, notes: Sequence[ChangeNote]) -> None:
            for note in notes:
                connection.execute(insert(tables.deletion).values(experiment_id=f"sent-{note.key}"))

        writer = Writer(store.engine, before_commit=send)
        writer.submit(keep("a")).result(WAIT_S)
        writer.submit(lambda transaction: transaction.connection.execute(select(tables.deletion)).all()).result(WAIT_S)
        writer.close()
        assert kept(store.engine) == ["a", "sent-a"]

    def test_when_they_cannot_be_sent_nothing_is_kept(self, store: Store) -> None:
        def fail(*_: object) -> None:
            raise StoreError("cannot send")

        told: list[ChangeNote] = []
        writer = Writer(store.engine, before_commit=fail, after_commit=told.extend)
        with pytest.raises(StoreError, match="cannot send"):
            writer.submit(keep("a")).result(WAIT_S)
        writer.close()
        assert (kept(store.engine), told) == ([], [])

    def test_a_listener_that_fails_does_not_undo_or_repeat_what_is_committed(self, store: Store) -> None:
        def fail(_: Sequence[ChangeNote]) -> None:
            raise RuntimeError("the listener is gone")

        writer = Writer(store.engine, after_commit=fail)
        runs: list[int] = []
        one, two = together(writer, keep("one"), lambda _: runs.append(1))
        assert one.result(WAIT_S) == "ONE"
        two.result(WAIT_S)
        assert runs == [1]
        assert writer.submit(keep("two")).result(WAIT_S) == "TWO"
        writer.close()


class TestClosing:
    def test_what_was_asked_for_is_done_and_what_comes_later_is_refused(self, store: Store) -> None:
        writer = Writer(store.engine)
        futures = together(writer, *(keep(f"n{number}") for number in range(5)))
        writer.close()
        assert all(future.done() for future in futures)
        assert len(kept(store.engine)) == 5
        assert not writer.lives
        with pytest.raises(StoreError, match="closed"):
            writer.submit(keep("late")).result(WAIT_S)

    def test_everyone_who_asks_while_it_closes_is_answered(self, store: Store) -> None:
        writer = Writer(store.engine)
        gate = threading.Barrier(5)
        futures: list[Future[str]] = []

        def ask(thread: int) -> None:
            gate.wait()
            futures.extend(writer.submit(keep(f"t{thread}-{number}")) for number in range(50))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        gate.wait()
        writer.close()
        for thread in threads:
            thread.join()
        done = [future for future in futures if future.exception(WAIT_S) is None]
        assert len(kept(store.engine)) == len(done)

    def test_closing_twice_is_as_good_as_once(self, store: Store) -> None:
        writer = Writer(store.engine)
        writer.close()
        writer.close()
        assert not writer.lives

    def test_it_gives_its_connection_back(self, store: Store) -> None:
        writer = Writer(store.engine)
        writer.submit(keep("a")).result(WAIT_S)
        writer.close()
        assert isinstance(store.engine.pool, QueuePool)
        assert store.engine.pool.checkedout() == 0


@pytest.mark.parametrize("database_url", [""])
def test_on_sqlite_an_answer_is_given_when_it_would_survive_a_power_cut(store: Store, writer: Writer) -> None:
    found = writer.submit(lambda transaction: transaction.connection.exec_driver_sql("PRAGMA synchronous").scalar())
    assert found.result(WAIT_S) == 2


class TestLostConnections:
    """On a real PostgreSQL that is killed, or that ends our session."""

    @pytest.fixture
    def engine(self, home: Home, private_postgres: Postgres) -> Iterator[Engine]:
        made = connect_database(home.create(), private_postgres.url)
        upgrade(made, home)
        yield made
        made.dispose()

    def test_while_the_server_is_away_each_is_told_and_when_it_is_back_all_goes_on(
        self, engine: Engine, private_postgres: Postgres
    ) -> None:
        writer = Writer(engine)
        assert writer.submit(keep("before")).result(WAIT_S) == "BEFORE"
        private_postgres.kill()
        for future in together(writer, keep("lost1"), keep("lost2")):
            with pytest.raises(StoreError) as caught:
                future.result(WAIT_S)
            assert "is PostgreSQL running" in caught.value.hint
        private_postgres.start()
        assert writer.submit(keep("after")).result(WAIT_S) == "AFTER"
        writer.close()
        assert kept(engine) == ["after", "before"]

    def test_a_server_that_was_restarted_in_a_quiet_moment_is_not_noticed(
        self, engine: Engine, private_postgres: Postgres
    ) -> None:
        writer = Writer(engine)
        writer.submit(keep("before")).result(WAIT_S)
        private_postgres.kill()
        private_postgres.start()
        assert writer.submit(keep("after")).result(WAIT_S) == "AFTER"
        writer.close()
        assert kept(engine) == ["after", "before"]

    def test_a_server_killed_in_mid_transaction_keeps_nothing_of_it(
        self, engine: Engine, private_postgres: Postgres
    ) -> None:
        told: list[ChangeNote] = []
        writer = Writer(engine, after_commit=told.extend)
        died: list[int] = []

        def die(_: Transaction) -> None:
            died.append(1)
            private_postgres.kill()

        futures = together(writer, keep("a"), die, keep("b"))
        for future in futures:
            with pytest.raises(StoreError):
                future.result(WAIT_S)
        private_postgres.start()
        assert (kept(engine), told) == ([], [])
        assert writer.submit(keep("after")).result(WAIT_S) == "AFTER"
        writer.close()

    def test_a_session_ended_before_its_commit_is_begun_anew_and_each_is_done_once(
        self, home: Home, postgres_url: str
    ) -> None:
        engine = connect_database(home, postgres_url)
        ended: list[int] = []

        def end_once(connection: Connection, _: Sequence[ChangeNote]) -> None:
            if not ended:
                ended.append(1)
                connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

        told: list[ChangeNote] = []
        writer = Writer(engine, before_commit=end_once, after_commit=told.extend)
        one, two = together(writer, keep("one"), keep("two"))
        assert (one.result(WAIT_S), two.result(WAIT_S)) == ("ONE", "TWO")
        writer.close()
        assert kept(engine) == ["one", "two"]
        assert [note.key for note in told] == ["one", "two"]
        engine.dispose()

    def test_a_commit_whose_answer_never_came_is_not_made_a_second_time(self, home: Home, postgres: Shared) -> None:
        # A commit that waits for a standby is on the disk already: who ends the session then cuts off only the answer.
        settings = {"synchronous_standby_names": "nobody"}
        with Postgres(postgres.programs, inside=postgres.folder, settings=settings) as server:
            impatient = connect_database(home, f"{server.url}?options=-csynchronous_commit%3Dlocal")
            with writing(impatient) as connection:
                connection.execute(text("CREATE TABLE counted (n serial, name text)"))
            engine = connect_database(home, server.url)
            writer = Writer(engine)
            futures = together(writer, count("one"), count("two"))
            end_session_that_waits(server, futures)
            for future in futures:
                with pytest.raises(StoreError) as caught:
                    future.result(WAIT_S)
                assert "may have been done" in caught.value.hint
            assert server.execute("SELECT name FROM counted ORDER BY n") == [("one",), ("two",)]
            writer.close()
            engine.dispose()
            impatient.dispose()


def count(name: str) -> Callable[[Transaction], None]:
    def operation(transaction: Transaction) -> None:
        transaction.connection.execute(text("INSERT INTO counted (name) VALUES (:name)"), {"name": name})

    return operation


def end_session_that_waits(server: Postgres, futures: Sequence[Future[Any]]) -> None:
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    while not server.execute(end):
        assert not any(future.done() for future in futures)
