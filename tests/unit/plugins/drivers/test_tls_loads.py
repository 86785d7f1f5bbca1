"""Redis and PostgreSQL over TLS: real servers, real certificates, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from driver_loads import COUNT, causes, loaded

from prony.errors import TransportError
from prony.load.endpoint import parse_endpoint
from prony.load.generator import LoadPlan, generate
from prony.load.outcome import LoadOutcome
from prony.load.schedule import plan
from prony.model.load import Load
from prony.plugins.drivers import sockets
from prony.plugins.drivers.postgres.driver import PostgresDriver
from prony.plugins.drivers.redis.driver import RedisDriver
from prony.ports.driver import Driver, Endpoint, Wants
from servers.binaries import AbsentError, find_with_tls
from servers.certificates import Certificate, certificate
from servers.needs import lack
from servers.postgres import Postgres
from servers.redis import redis_server

# One connection has been answered before the others are opened.
GROWING = {"stages": [{"concurrency": 1, "duration": "2s"}, {"concurrency": 4, "duration": "3s"}]}


def grown(driver: Driver, endpoint: Endpoint, scratch: Path, **options: object) -> LoadOutcome:
    load = Load.model_validate(GROWING)
    prepared = driver.prepare(Wants(endpoint, driver.Options(**options), seed=3, scratch=scratch))
    # Users who think between two requests: how many there are does not matter, and who never rests takes a core.
    schedule = replace(plan(load, base=scratch), think_ns=20_000_000)
    outcome = generate(LoadPlan(prepared, endpoint, schedule, load, scratch / "load", processes=1))
    driver.finish()
    return outcome


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def redis_url(made: Certificate) -> Iterator[str]:
    with ExitStack() as block:
        try:
            url = block.enter_context(redis_server(tls=made))
        except AbsentError as exc:
            lack("redis-tls", str(exc))
        yield url


@pytest.fixture(scope="module")
def secure_url(made: Certificate) -> Iterator[str]:
    """The URL of a PostgreSQL that has a certificate; without `sslmode`."""
    with ExitStack() as block:
        try:
            server = block.enter_context(_postgres(made))
        except AbsentError as exc:
            lack("postgres-tls", str(exc))
        yield server.url.replace("127.0.0.1", "localhost")


def _postgres(made: Certificate) -> Postgres:
    programs = find_with_tls()
    server = Postgres(programs)
    settings = {"ssl": "on"}
    for name, path in {"ssl_cert_file": made.certificate, "ssl_key_file": made.key}.items():
        copied = Path(shutil.copy(path, server.folder))
        copied.chmod(0o600)
        if programs.account is not None:
            shutil.chown(copied, programs.account)
        settings[name] = str(copied)
    server.settings |= settings
    return server


class TestRedis:
    def test_a_load_is_answered(self, redis_url: str, tmp_path: Path) -> None:
        driver = RedisDriver()
        _, outcome = loaded(driver, parse_endpoint(redis_url), {}, tmp_path)
        driver.finish()
        assert causes(outcome) == {"OK": COUNT}

    def test_later_connections_take_up_the_session_of_the_first(self, redis_url: str, tmp_path: Path) -> None:
        outcome = grown(RedisDriver(), parse_endpoint(redis_url), tmp_path)
        assert set(causes(outcome)) == {"OK"}
        assert [(one.connections_opened, one.sessions_resumed) for one in outcome.clients] == [(4, 3)]

    def test_a_certificate_that_nobody_vouches_for_is_told_before_the_load(self, redis_url: str) -> None:
        with pytest.raises(TransportError, match=r"TLS with localhost.*CERTIFICATE_VERIFY_FAILED") as caught:
            RedisDriver().prepare(Wants(parse_endpoint(redis_url.partition("?")[0]), RedisDriver.Options(), seed=3))
        assert "?ca=FILE" in caught.value.hint

    def test_a_redis_that_waits_for_words_when_tls_is_spoken_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sockets, "_HANDSHAKE_S", 0.2)
        try:
            with redis_server() as plain, pytest.raises(TransportError, match="TLS with"):
                RedisDriver().prepare(Wants(replace(parse_endpoint(plain), tls=True), RedisDriver.Options(), seed=3))
        except AbsentError as exc:
            lack("redis", str(exc))


class TestPostgres:
    @pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
    def test_every_statement_goes_over_tls(self, secure_url: str, made: Certificate, tmp_path: Path, mode: str) -> None:
        endpoint = parse_endpoint(
            f"{secure_url}?sslmode={mode}" + ("" if mode == "require" else f"&sslrootcert={made.ca}")
        )
        # Divides by zero on a connection without it.
        sql = "SELECT 1 / ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        driver = PostgresDriver()
        _, outcome = loaded(driver, endpoint, {"operation": "sql", "sql": sql, "must_match": True}, tmp_path)
        assert causes(outcome) == {"OK": COUNT}

    def test_it_never_takes_up_a_session_again(self, secure_url: str, tmp_path: Path) -> None:
        # PostgreSQL switches sessions off: what is measured is what its own clients have too.
        endpoint = parse_endpoint(f"{secure_url}?sslmode=require")
        outcome = grown(PostgresDriver(), endpoint, tmp_path, operation="sql", sql="SELECT 1")
        assert set(causes(outcome)) == {"OK"}
        assert [(one.connections_opened, one.sessions_resumed) for one in outcome.clients] == [(4, 0)]

    def test_who_it_is_is_checked_as_far_as_was_asked(self, secure_url: str, made: Certificate) -> None:
        def prepared(url: str) -> None:
            PostgresDriver().prepare(
                Wants(parse_endpoint(url), PostgresDriver.Options(operation="sql", sql="SELECT 1"), seed=3)
            )

        with pytest.raises(TransportError, match="CERTIFICATE_VERIFY_FAILED"):
            prepared(f"{secure_url}?sslmode=verify-full")
        other = secure_url.replace("localhost", "127.0.0.1")
        prepared(f"{other}?sslmode=verify-ca&sslrootcert={made.ca}")
        with pytest.raises(TransportError, match="IP address mismatch"):
            prepared(f"{other}?sslmode=verify-full&sslrootcert={made.ca}")

    def test_a_server_without_tls_is_told_before_the_load_and_refused_within(
        self, empty_postgres_url: str, tmp_path: Path
    ) -> None:
        plain, options = parse_endpoint(empty_postgres_url), PostgresDriver.Options(operation="sql", sql="SELECT 1")
        secure = parse_endpoint(f"{empty_postgres_url}?sslmode=require")
        with pytest.raises(TransportError, match="does not offer TLS"):
            PostgresDriver().prepare(Wants(secure, options, seed=3))
        load = Load.model_validate({"closed": {"concurrency": 1}, "requests": 2})
        prepared = PostgresDriver().prepare(Wants(plain, options, seed=3, count=2))
        outcome = generate(LoadPlan(prepared, secure, plan(load, base=tmp_path), load, tmp_path / "load", processes=1))
        assert causes(outcome) == {"REFUSED": 2}
