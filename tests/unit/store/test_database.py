"""What a URL leads to, and what a person is told when the database cannot be had or will not do as asked."""

from __future__ import annotations

import socket
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, Executable, delete, insert, select, text, update
from sqlalchemy.engine import make_url

from prony.errors import CapacityError, InputError, StoreError
from prony.store import tables
from prony.store.codecs import experiment_row
from prony.store.database import connect_database, name_of, reading, writing
from prony.store.home import Home
from prony.store.store import Store
from servers.postgres import Postgres
from servers.shared import Shared

from .nouns import NOW, experiment, jobs, overview, running, summary, write_folder


def _row(experiment_id: str = "abc123def", **changes: object) -> dict[str, object]:
    return experiment_row(experiment(experiment_id)) | changes


def _execute(engine: Engine, *statements: Executable) -> None:
    """Carry out all in one transaction."""
    with writing(engine) as connection:
        for statement in statements:
            connection.execute(statement)


class TestUrls:
    @pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
    def test_every_way_to_write_postgresql_leads_to_our_driver(self, home: Home, scheme: str) -> None:
        engine = connect_database(home, f"{scheme}://user:secret@host:5433/name")
        assert (engine.dialect.name, engine.driver) == ("postgresql", "psycopg")

    def test_no_url_is_the_file_in_the_home_and_a_url_may_name_another(self, home: Home, tmp_path: Path) -> None:
        assert connect_database(home).url.database == str(home.database)
        engine = connect_database(home, f"sqlite:///{tmp_path}/other.db")
        with writing(engine) as connection:
            connection.execute(text("CREATE TABLE t (n INTEGER)"))
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert (tmp_path / "other.db").exists()

    @pytest.mark.parametrize(
        "url", ["no url", "postgresql://u:hunter2@host:port/db", "postgresql://u:hun/ter2@h1:1,h2:2/db"]
    )
    def test_what_is_no_url_is_refused_and_its_password_is_not_repeated(self, home: Home, url: str) -> None:
        with pytest.raises(StoreError, match="is not the URL of a database") as caught:
            connect_database(home, url)
        told = "".join(traceback.format_exception(caught.value))
        assert "postgresql://user@host/name" in caught.value.hint
        assert "ter2" not in told
        assert "hunter2" not in told

    @pytest.mark.parametrize("scheme", ["mysql", "postgresql+asyncpg", "postgresql+psycopg2"])
    def test_what_prony_does_not_speak_to_is_named(self, home: Home, scheme: str) -> None:
        with pytest.raises(StoreError, match="does not support"):
            connect_database(home, f"{scheme}://user:hunter2@host/name")

    def test_without_the_driver_the_line_that_installs_it_is_told(
        self, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(CapacityError, match="psycopg") as caught:
            connect_database(home, "postgresql://host/name")
        assert caught.value.hint == "pip install 'prony[postgres]'"

    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("postgresql://user:secret@db.lab:5433/prony", "the database prony on db.lab:5433"),
            ("postgresql://user:secret@/prony?host=/run/pg", "the database prony on /run/pg"),
            ("postgresql:///prony?host=one&host=two", "the database prony on one, two"),
            ("postgresql://", "the database postgres on this machine"),
        ],
    )
    def test_a_database_is_named_without_its_secrets(self, home: Home, url: str, name: str) -> None:
        assert name_of(connect_database(home, url)) == name


class TestSessions:
    @pytest.fixture
    def engine(self, home: Home, postgres_url: str) -> Engine:
        return connect_database(home, postgres_url)

    def test_every_session_is_set_up_alike(self, engine: Engine) -> None:
        with reading(engine) as connection:
            show = {
                name: connection.execute(text(f"SHOW {name}")).scalar()
                for name in (
                    "application_name", "TimeZone", "lock_timeout", "idle_in_transaction_session_timeout",
                    "client_encoding", "transaction_isolation",
                )
            }  # fmt: skip
        assert show == {
            "application_name": "prony",
            "TimeZone": "UTC",
            "lock_timeout": "10s",
            "idle_in_transaction_session_timeout": "1min",
            "client_encoding": "UTF8",
            "transaction_isolation": "repeatable read",
        }

    def test_what_the_url_says_about_connecting_stands(self, home: Home, postgres_url: str) -> None:
        with reading(connect_database(home, f"{postgres_url}?application_name=night-shift")) as connection:
            assert connection.execute(text("SHOW application_name")).scalar() == "night-shift"

    def test_a_read_that_ended_leaves_its_connection_fit_for_writing(self, engine: Engine) -> None:
        with reading(engine) as connection:
            connection.execute(select(tables.experiment))
        with writing(engine) as connection:
            connection.execute(insert(tables.experiment).values(_row()))

    def test_a_connection_that_died_while_nobody_used_it_is_replaced_unseen(
        self, engine: Engine, postgres_url: str
    ) -> None:
        with reading(engine) as connection:
            pid = connection.execute(text("SELECT pg_backend_pid()")).scalar()
        with writing(connect_database(Home(Path("unused")), postgres_url)) as other:
            other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        with reading(engine) as connection:
            assert connection.execute(text("SELECT pg_backend_pid()")).scalar() != pid

    def test_instants_are_in_utc_whatever_the_zone_of_the_server(self, engine: Engine) -> None:
        with writing(engine) as connection:
            assert connection.execute(text("SELECT boot_val FROM pg_settings WHERE name = 'TimeZone'")).scalar()
            connection.execute(insert(tables.experiment).values(_row()))
            found = connection.execute(select(tables.experiment.c.created_at)).scalar_one()
        assert found == NOW
        assert found.utcoffset() == datetime.now(UTC).utcoffset()


class TestBoth:
    def test_a_read_sees_one_moment_while_others_write(self, store: Store) -> None:
        store.save_experiment(experiment("first"))
        with reading(store.engine) as connection:
            ids = select(tables.experiment.c.id)
            assert connection.execute(ids).scalars().all() == ["first"]
            store.save_experiment(experiment("second"))
            assert connection.execute(ids).scalars().all() == ["first"]
        assert len(store.experiments()) == 2

    def test_a_name_with_a_nul_is_kept_once_and_found_again(self, store: Store) -> None:
        odd = experiment(name="a\0b", recipe_text="\0")
        for _ in range(2):
            store.save_experiment(odd)
        assert store.experiment(odd.id) == odd
        assert overview(store)[0]["name"] == "a\ufffdb"

    def test_an_id_with_a_nul_is_simply_not_there(self, store: Store) -> None:
        with reading(store.engine) as connection:
            query = select(tables.experiment.c.id).where(tables.experiment.c.id == "abc\0")
            assert connection.execute(query).all() == []

    def test_a_title_with_a_nul_does_not_keep_a_result_from_being_recorded(self, store: Store) -> None:
        (job,) = (one.model_copy(update={"cell": {"workload.model": "a\0b"}}) for one in jobs(batch_sizes=(1,)))
        store.save_experiment(experiment(job_count=1), [job])
        folder = write_folder(store.home.result_folder(job.experiment_id, job.id), job)
        assert store.record_result(folder, summary(job))
        assert overview(store)[0]["headline_title"] == "model=a\ufffdb"
        (record,) = store.records(job.experiment_id)
        assert record.summary.title == "model=a\0b"

    def test_an_id_of_128_characters_is_kept_and_a_longer_one_refused(self, store: Store) -> None:
        store.save_experiment(experiment("a" * 128), jobs("a" * 128, ()))
        assert store.experiment("a" * 128).id == "a" * 128
        with pytest.raises(InputError, match="cannot be an id"):
            store.save_experiment(experiment("a" * 129))

    def test_a_name_too_long_for_its_column_is_refused(self, store: Store) -> None:
        with pytest.raises(InputError, match=r"experiment\.name has 129 characters"):
            store.save_experiment(experiment(name="n" * 129))
        assert store.experiments() == ()

    @pytest.mark.parametrize("count", [2**63, "\ud800"])
    def test_a_value_that_the_database_cannot_keep_is_the_callers_mistake(self, store: Store, count: int | str) -> None:
        key = "job_count" if isinstance(count, int) else "name"
        with pytest.raises(InputError, match="cannot store a value"):
            _execute(
                store.engine,
                insert(tables.experiment).values(_row("fine")),
                insert(tables.experiment).values(_row() | {key: count}),
            )
        assert store.experiments() == ()

    def test_a_number_that_is_none_is_nobodys_headline(self, store: Store) -> None:
        first, second = jobs()
        store.save_experiment(experiment(), [first, second])
        for job, median_ms in ((first, float("nan")), (second, 3.0)):
            folder = write_folder(store.home.result_folder(job.experiment_id, job.id), job)
            store.record_result(folder, summary(job, median_ms=median_ms))
        assert overview(store)[0]["best_job_id"] == second.id

    def test_instants_keep_their_microseconds_from_the_first_year_to_the_last(self, store: Store) -> None:
        for year in (1, 1969, 9999):
            at = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
            store.save_experiment(experiment(f"y{year}", created_at=at, ended_at=at))
            assert store.experiment(f"y{year}").ended_at == at
            assert (
                store.experiment(f"y{year}").model_dump_json()
                == experiment(f"y{year}", created_at=at, ended_at=at).model_dump_json()
            )

    def test_a_broken_rule_of_the_database_is_a_store_error(self, store: Store) -> None:
        job = {"id": "j", "experiment_id": "none", "position": 0, "document": "{}"}
        with pytest.raises(StoreError, match=r"the database .* says: "):
            _execute(
                store.engine,
                insert(tables.experiment).values(_row()),
                insert(tables.job).values(job),
            )
        assert store.experiments() == ()


class TestTrouble:
    def _refused(self, home: Home, url: str) -> StoreError:
        with pytest.raises(StoreError) as caught:
            Store.open(home, url=url)
        told = "".join(traceback.format_exception(caught.value))
        password = make_url(url).password
        assert password is None or str(password) not in told + caught.value.hint
        return caught.value

    def test_nobody_listens(self, home: Home) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            error = self._refused(home, f"postgresql://user:hunter2@127.0.0.1:{port}/prony")
        assert f"the database prony on 127.0.0.1:{port} says: " in error.message
        assert "refused" in error.message
        assert "is PostgreSQL running" in error.hint

    def test_a_wrong_password(self, home: Home, postgres_url: str) -> None:
        wrong = make_url(postgres_url).set(password="hunter2").render_as_string(hide_password=False)
        assert "check the user and the password" in self._refused(home, wrong).hint

    def test_a_database_that_is_not_there(self, home: Home, postgres: Shared) -> None:
        assert "createdb" in self._refused(home, postgres.url_of("nowhere")).hint

    def test_a_database_that_cannot_hold_every_letter(self, home: Home, postgres: Shared) -> None:
        import psycopg

        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
        try:
            assert "SQL_ASCII" in self._refused(home, postgres.url_of("plain")).message
        finally:
            postgres.drop("plain")

    def test_a_user_who_may_not_make_tables(self, home: Home, empty_postgres_url: str) -> None:
        import psycopg

        with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
            connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-secret'")
            try:
                url = make_url(empty_postgres_url).set(username="guest", password="guest-secret")
                error = self._refused(home, url.render_as_string(hide_password=False))
            finally:
                connection.execute("DROP ROLE guest")
        assert "permission denied" in error.message
        assert "OWNER TO" in error.hint

    def test_a_database_that_may_only_be_read(self, home: Home, postgres_url: str) -> None:
        with Store.open(home, url=f"{postgres_url}?options=-cdefault_transaction_read_only%3Don") as store:
            with pytest.raises(StoreError) as caught:
                store.save_experiment(experiment())
            assert "the URL of the primary" in caught.value.hint

    def test_a_row_that_another_holds_is_not_waited_for_for_ever(self, home: Home, postgres_url: str) -> None:
        with Store.open(home, url=postgres_url) as store:
            store.save_experiment(running())
            with writing(store.engine) as holder:
                holder.execute(update(tables.experiment).values(job_count=3))
                with pytest.raises(StoreError) as caught:
                    _execute(store.engine, text("SET LOCAL lock_timeout = '50ms'"), delete(tables.experiment))
        assert "held a lock" in caught.value.hint

    def test_two_who_wait_for_each_other_are_parted_and_told_to_try_again(self, home: Home, postgres_url: str) -> None:
        with Store.open(home, url=postgres_url) as store:
            store.save_experiment(running("a"))
            store.save_experiment(running("b"))
            gate, told = threading.Barrier(2), []

            def lock(*ids: str) -> None:
                try:
                    with writing(store.engine) as connection:
                        for number, one in enumerate(ids):
                            change = update(tables.experiment).where(tables.experiment.c.id == one)
                            connection.execute(change.values(job_count=9))
                            if number == 0:
                                gate.wait()
                except StoreError as error:
                    told.append(error)

            threads = [threading.Thread(target=lock, args=ids) for ids in (("a", "b"), ("b", "a"))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        (error,) = told
        assert "try again" in error.hint

    def test_a_server_that_dies_in_mid_transaction_and_comes_back(self, home: Home, private_postgres: Postgres) -> None:
        with Store.open(home, url=private_postgres.url) as store:
            store.save_experiment(experiment("before"))
            with pytest.raises(StoreError) as caught:
                self._write_while_it_dies(store.engine, private_postgres)
            assert "is PostgreSQL running" in caught.value.hint
            with pytest.raises(StoreError, match="refused"):
                store.experiments()
            private_postgres.start()
            assert [one.id for one in store.experiments()] == ["before"]
            store.save_experiment(experiment("after"))

    def _write_while_it_dies(self, engine: Engine, server: Postgres) -> None:
        with writing(engine) as connection:
            connection.execute(insert(tables.experiment).values(_row("lost")))
            server.kill()
            connection.execute(select(tables.experiment))

    def test_when_all_connections_are_taken_it_says_so(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = connect_database(home.create())
        pool = engine.pool
        monkeypatch.setattr(pool, "_timeout", 0.01)
        taken = [engine.connect() for _ in range(15)]
        with pytest.raises(StoreError, match=r"no connection to the database .* became free"), reading(engine):
            pytest.fail("there was one more")
        for connection in taken:
            connection.close()
        engine.dispose()
