"""Whole loads on real data services, by client processes as they run everywhere else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from documented_qdrant import documented_qdrant
from driver_loads import COUNT, USERS, causes, digested, loaded

from prony.load.endpoint import parse_endpoint
from prony.plugins.drivers.postgres.driver import PostgresDriver
from prony.plugins.drivers.redis.driver import RedisDriver
from prony.plugins.drivers.vectors.qdrant import QdrantDriver
from prony.ports.driver import Cause
from servers.binaries import AbsentError
from servers.needs import lack
from servers.postgres import Postgres
from servers.redis import redis_server


@pytest.mark.parametrize("options", [{}, {"pipeline": 16, "protocol": 3}, {"value_size": 100_000, "key_count": 100}])
def test_redis(tmp_path: Path, options: dict[str, Any]) -> None:
    try:
        with redis_server() as url:
            driver = RedisDriver()
            prepared, outcome = loaded(driver, parse_endpoint(url), options, tmp_path)
            driver.finish()
    except AbsentError as exc:
        lack("redis", str(exc))
    assert causes(outcome) == {"OK": COUNT}
    operations = Counter(prepared.requests[number].operation for number in outcome.records["request"].tolist())
    assert operations == {"get": COUNT // 2, "set": COUNT // 2}
    assert sum(client.connections_opened for client in outcome.clients) == USERS


@pytest.mark.parametrize("operation", ["mixed", "tpcb"])
def test_postgres(empty_postgres_url: str, tmp_path: Path, operation: str) -> None:
    driver = PostgresDriver()
    prepared, outcome = loaded(driver, parse_endpoint(empty_postgres_url), {"operation": operation}, tmp_path)
    schema = prepared.wire_options["settings"]["search_path"]
    table, before = ("pgbench_history", 0) if operation == "tpcb" else ("stress_test", 10_000)
    with psycopg.connect(empty_postgres_url) as connection:
        row = connection.execute(f"SELECT count(*) FROM {schema}.{table}".encode()).fetchone()
    driver.finish()
    assert causes(outcome) == {"OK": COUNT}
    writes = sum(
        prepared.requests[number].operation in ("insert", "tpcb") for number in outcome.records["request"].tolist()
    )
    assert row == (before + writes,)


def test_a_postgres_that_is_killed_in_a_transaction_loses_no_row(private_postgres: Postgres, tmp_path: Path) -> None:
    """Each request ends as one row, with what the server said last where it said something."""
    driver, endpoint = PostgresDriver(), parse_endpoint(private_postgres.url)
    sql = ["BEGIN", "SELECT CASE WHEN {n} = 7 THEN pg_terminate_backend(pg_backend_pid()) END", "END"]
    options = {"operation": "sql", "sql": sql, "values": {"n": "random_int:1:10"}}
    _, outcome = loaded(driver, endpoint, options, tmp_path)
    found = causes(outcome)
    assert found.total() == COUNT
    assert set(found) == {"OK", "STATUS"}
    ended = outcome.records["status"][outcome.records["cause"] == Cause.STATUS]
    assert set(ended.tolist()) == {57}
    assert COUNT / 20 < found["STATUS"] < COUNT / 5


def test_qdrant(tmp_path: Path) -> None:
    with documented_qdrant() as (_, endpoint):
        driver = QdrantDriver()
        options = {"count": 500, "dim": 16, "top_k": 5}
        prepared, outcome = loaded(driver, endpoint, options, tmp_path)
        digests = digested(driver, prepared, outcome)
        driver.finish()
    assert causes(outcome) == {"OK": COUNT}
    assert [(digest.cause, digest.quality) for digest in digests] == [(Cause.OK, 1.0)] * COUNT
