"""The postgres driver against a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import psycopg
import pytest
from driver_lines import SocketLine

from prony.errors import InputError, SutError
from prony.plugins.drivers.postgres.driver import PostgresDriver, PostgresOptions
from prony.plugins.drivers.postgres.session import PostgresSession
from prony.ports.driver import Cause, Endpoint, Prepared, Wants
from servers.postgres import Postgres
from servers.shared import Shared

SINGLE = ["insert", "point_lookup", "range_scan", "like_scan", "aggregation"]


@pytest.fixture
def endpoint(empty_postgres_url: str) -> Endpoint:
    parts = urlsplit(empty_postgres_url)
    return Endpoint(
        host=parts.hostname or "",
        port=parts.port or 0,
        user=parts.username or "",
        password=parts.password or "",
        database=parts.path[1:],
    )


@pytest.fixture
def driver(empty_postgres_url: str) -> Iterator[PostgresDriver]:
    """A driver that has cleared up before the database goes."""
    made = PostgresDriver()
    yield made
    made.finish()


def prepared(driver: PostgresDriver, endpoint: Endpoint, *, seed: int = 7, **options: object) -> Prepared:
    chosen = {"rows": 300, "distinct": 40, **options}
    return driver.prepare(Wants(endpoint=endpoint, options=PostgresOptions.model_validate(chosen), seed=seed))


def count(url: str, query: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.parametrize("operation", [*SINGLE, "mixed"])
def test_every_statement_finds_what_it_looks_for_and_nothing_is_left(
    driver: PostgresDriver, endpoint: Endpoint, empty_postgres_url: str, operation: str
) -> None:
    made = prepared(driver, endpoint, operation=operation)
    line = SocketLine(endpoint, made)
    assert {line.ask(request.content) for request in made.requests} == {(0, Cause.OK)}
    line.close()
    kinds = Counter(request.operation for request in made.requests)
    assert kinds == ({"insert": 20, **dict.fromkeys(SINGLE[1:], 5)} if operation == "mixed" else {operation: 40})
    schema = made.wire_options["settings"]["search_path"]
    assert count(empty_postgres_url, f"SELECT count(*) FROM {schema}.stress_test") == 300 + kinds["insert"]
    driver.finish()
    assert count(empty_postgres_url, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'prony%'") == 0


@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize("operation", ["tpcb", "simple_update", "select_only"])
def test_pgbenchs_transactions_move_money_as_they_say(
    driver: PostgresDriver, endpoint: Endpoint, empty_postgres_url: str, operation: str, pipelined: bool
) -> None:
    made = prepared(driver, endpoint, operation=operation, pipelined=pipelined)
    line = SocketLine(endpoint, made)
    assert {line.ask(request.content) for request in made.requests} == {(0, Cause.OK)}
    line.close()
    schema = made.wire_options["settings"]["search_path"]
    writes = 0 if operation == "select_only" else 40
    assert count(empty_postgres_url, f"SELECT count(*) FROM {schema}.pgbench_history") == writes
    moved = count(empty_postgres_url, f"SELECT coalesce(sum(delta), 0) FROM {schema}.pgbench_history")
    assert count(empty_postgres_url, f"SELECT sum(abalance) FROM {schema}.pgbench_accounts") == moved
    tellers = count(empty_postgres_url, f"SELECT sum(tbalance) FROM {schema}.pgbench_tellers")
    assert tellers == (moved if operation == "tpcb" else 0)


def test_tables_that_pgbench_made_are_used_at_their_scale(
    driver: PostgresDriver, endpoint: Endpoint, empty_postgres_url: str
) -> None:
    with pytest.raises(SutError, match="42P01"):
        prepared(driver, endpoint, operation="tpcb", initialise=False)
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("CREATE TABLE pgbench_branches (bid int, bbalance int)")
        connection.execute("INSERT INTO pgbench_branches SELECT n, 0 FROM generate_series(1, 3) n")
        connection.execute("CREATE TABLE pgbench_accounts (aid int, abalance int)")
        connection.execute("INSERT INTO pgbench_accounts SELECT n, 0 FROM generate_series(1, 300000) n")
    made = prepared(driver, endpoint, operation="select_only", initialise=False, distinct=200)
    assert "search_path" not in made.wire_options["settings"]
    asked = [int(request.content.split(b"\x00\x01\x00\x00\x00")[1][1:].split(b"\x00")[0]) for request in made.requests]
    assert max(asked) > 200_000
    line = SocketLine(endpoint, made)
    assert line.ask(made.requests[0].content) == (0, Cause.OK)
    line.close()
    driver.finish()
    assert count(empty_postgres_url, "SELECT count(*) FROM pgbench_branches") == 3


def test_any_sql_is_sent_with_its_values(driver: PostgresDriver, endpoint: Endpoint, empty_postgres_url: str) -> None:
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("CREATE TABLE seen (n int, pair int, text text, words text[])")
    first = "INSERT INTO seen VALUES ({seq}, {n}, {random_hex:9}, '{a,b}')"
    sql = ["BEGIN", first, "INSERT INTO seen VALUES (-1, {n})", "END"]
    made = prepared(driver, endpoint, operation="sql", sql=sql, values={"n": "random_int:5:9"}, distinct=10)
    line = SocketLine(endpoint, made)
    assert {line.ask(request.content) for request in made.requests} == {(0, Cause.OK)}
    line.close()
    with psycopg.connect(empty_postgres_url) as connection:
        rows = connection.execute("SELECT n, pair, length(text), words FROM seen WHERE n >= 0 ORDER BY n").fetchall()
        pairs = connection.execute("SELECT array_agg(pair ORDER BY pair) FROM seen GROUP BY n >= 0").fetchall()
    assert [one[0] for one in rows] == list(range(10))
    assert all(one[2:] == (9, ["a", "b"]) for one in rows)
    assert {value for (found,) in pairs for value in found} <= set(range(5, 10))
    assert pairs[0] == pairs[1]


def test_an_error_of_the_server_is_a_status_and_a_late_one_is_rolled_back(
    driver: PostgresDriver, endpoint: Endpoint, empty_postgres_url: str
) -> None:
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("CREATE TABLE once (n int UNIQUE)")
    sql = ["BEGIN", "INSERT INTO once VALUES ({seq})", "END"]
    for pipelined in (False, True):
        made = prepared(driver, endpoint, operation="sql", sql=sql, distinct=3, pipelined=pipelined)
        line = SocketLine(endpoint, made)
        answers = [line.ask(request.content) for request in (*made.requests, *made.requests)]
        expected = (23, Cause.STATUS) if pipelined else (0, Cause.OK)
        assert answers == [expected] * 3 + [(23, Cause.STATUS)] * 3
        line.close()
    assert count(empty_postgres_url, "SELECT count(*) FROM once") == 3


def test_wrong_sql_is_told_before_the_load(driver: PostgresDriver, endpoint: Endpoint) -> None:
    with pytest.raises(InputError, match=r"42601.*SELEKT"):
        prepared(driver, endpoint, operation="sql", sql="SELEKT 1")
    with pytest.raises(InputError, match="not a rule"):
        prepared(driver, endpoint, operation="sql", sql="SELECT {n}", values={"n": "random:1"})
    with pytest.raises(ValueError, match="or neither"):
        PostgresOptions(operation="sql")


def test_tables_that_cannot_be_made_leave_nothing(
    driver: PostgresDriver, endpoint: Endpoint, empty_postgres_url: str
) -> None:
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE FUNCTION no() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'")
        connection.execute(
            "CREATE EVENT TRIGGER no ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION no()"
        )
    with pytest.raises(SutError, match="P0001"):
        prepared(driver, endpoint, operation="insert")
    assert count(empty_postgres_url, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'prony%'") == 0


def test_a_unix_socket_is_spoken_to(postgres: Shared) -> None:
    folder = postgres.programs.make_folder()
    try:
        with Postgres(postgres.programs, settings={"unix_socket_directories": str(folder)}) as server:
            parts = urlsplit(server.url)
            path = str(folder / f".s.PGSQL.{server.port}")
            endpoint = Endpoint(
                path=path, user=parts.username or "", password=parts.password or "", database="postgres"
            )
            driver = PostgresDriver()
            made = prepared(driver, endpoint, operation="point_lookup")
            line = SocketLine(endpoint, made)
            assert line.ask(made.requests[0].content) == (0, Cause.OK)
            line.close()
            driver.finish()
    finally:
        shutil.rmtree(folder)


def test_requests_are_the_same_for_the_same_seed(driver: PostgresDriver, endpoint: Endpoint) -> None:
    one, same, other = (prepared(driver, endpoint, seed=seed).requests for seed in (1, 1, 2))
    assert one == same != other


def test_the_older_ways_to_log_in_are_spoken(private_postgres: Postgres) -> None:
    ways = {"md5": "old", "password": "clear", "trust": "free"}
    private_postgres.execute("ALTER SYSTEM SET password_encryption = 'md5'")
    private_postgres.kill()
    rules = private_postgres.folder / "data" / "pg_hba.conf"
    ours = [f"host all {user} 127.0.0.1/32 {way}" for way, user in ways.items()]
    rules.write_text("\n".join([*ours, rules.read_text()]))
    private_postgres.start()
    for user in ways.values():
        private_postgres.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'")
        endpoint = Endpoint(host="127.0.0.1", port=private_postgres.port, user=user, password="secret")
        made = prepared(PostgresDriver(), endpoint, operation="sql", sql="SELECT 1", database="postgres")
        line = SocketLine(endpoint, made)
        assert line.ask(made.requests[0].content) == (0, Cause.OK)
        line.close()
        if user != "free":
            with pytest.raises(InputError, match="28P01"):
                PostgresSession(replace(endpoint, password="wrong"), {"user": user, "database": "postgres"})


def test_who_may_not_come_in_is_told(endpoint: Endpoint) -> None:
    with pytest.raises(InputError, match="28P01"):
        prepared(PostgresDriver(), replace(endpoint, password="wrong"))
    with pytest.raises(InputError, match="password"):
        prepared(PostgresDriver(), replace(endpoint, password=""))
    with pytest.raises(InputError, match="3D000"):
        PostgresSession(endpoint, {"user": endpoint.user, "database": "nowhere"})
