"""The servers that other tests build on: they keep what was committed, and nothing of them is left behind."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest

from servers.binaries import AbsentError
from servers.needs import HOW, count_missing, lack
from servers.ports import refusing_port
from servers.postgres import Postgres
from servers.process import is_alive, wait_gone
from servers.redis import redis_server
from servers.shared import Shared, shared, wait_ended

TESTS = Path(__file__).parents[1]
USE = (
    "import sys; from pathlib import Path\n"
    "from servers.shared import shared\n"
    "with shared(Path(sys.argv[1])) as server:\n"
    "    print(server.url, flush=True); sys.stdin.read()"
)


def _postmaster(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
        assert row is not None
        return int(row[0].splitlines()[0])


def test_a_killed_server_comes_back_at_its_url_with_all_that_was_committed(private_postgres: Postgres) -> None:
    url, first = private_postgres.url, private_postgres.pid
    private_postgres.execute("CREATE TABLE kept (n int)")
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO kept VALUES (1)")
        connection.commit()
        connection.execute("INSERT INTO kept VALUES (2)")
        private_postgres.kill()
        assert not is_alive(first)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    private_postgres.start()
    assert private_postgres.url == url
    assert private_postgres.execute("SELECT n FROM kept") == [(1,)]


def test_a_stopped_server_leaves_neither_a_process_nor_a_folder(postgres: Shared, tmp_path: Path) -> None:
    server = Postgres(postgres.programs, inside=postgres.folder).start()
    before, folder = server.pid, server.folder
    server.stop()
    assert not is_alive(before)
    assert not folder.exists()


def test_every_database_is_fresh_and_one_of_a_test_has_the_tables(postgres_url: str, empty_postgres_url: str) -> None:
    query = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'experiment'"
    counts = [psycopg.connect(url).execute(query).fetchone() for url in (postgres_url, empty_postgres_url)]
    assert counts == [(1,), (0,)]


def test_users_of_one_folder_share_a_server_that_ends_when_the_last_one_is_killed(
    postgres: Shared, tmp_path: Path
) -> None:
    place = tmp_path / "servers"
    command = [sys.executable, "-c", USE, str(place)]
    cwd = Path(__file__).parents[1]
    users = [
        subprocess.Popen(command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    urls = {user.stdout.readline().strip() for user in users if user.stdout}
    (url,) = urls
    server = _postmaster(url)
    users[0].kill()
    users[0].communicate()
    assert not wait_ended(place, within_s=0.3)
    assert is_alive(server)
    users[1].kill()
    users[1].communicate()
    assert wait_ended(place)
    assert not is_alive(server)


def test_a_server_whose_keeper_was_killed_ends_too_and_the_next_user_gets_another(
    postgres: Shared, tmp_path: Path
) -> None:
    place = tmp_path / "servers"
    with shared(place) as first:
        server = _postmaster(first.url)
        psutil.Process(json.loads((place / "server.json").read_text())["pid"]).kill()
        assert wait_gone(server)
        with shared(place) as second:
            assert _postmaster(second.url) != server
    assert wait_ended(place)


def test_where_there_is_none_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"absent": "none was found"}')
    with pytest.raises(AbsentError, match="none was found"), shared(tmp_path):
        pytest.fail("there is none")
    assert wait_ended(tmp_path)


def test_a_redis_answers_at_its_url() -> None:
    redis = pytest.importorskip("redis")
    try:
        with redis_server() as url, redis.Redis.from_url(url, socket_timeout=60) as client:
            client.set("key", "value")
            assert client.get("key") == b"value"
    except AbsentError as exc:
        lack("redis", str(exc))


def test_no_port_is_given_out_twice_while_whoever_has_it_lives() -> None:
    code = "from servers.ports import free_port\nprint(*[free_port() for _ in range(200)], flush=True)\ninput()"
    with ExitStack() as block:
        tests = Path(__file__).parents[1]
        others = [
            block.enter_context(
                subprocess.Popen([sys.executable, "-c", code], cwd=tests, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for _ in range(3)
        ]
        given = [port for other in others if other.stdout for port in other.stdout.readline().split()]
        for other in others:
            other.kill()
    assert len(given) == len(set(given)) == 600


def test_a_port_refuses_while_it_is_held() -> None:
    with refusing_port() as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60)


def test_what_is_missing_is_told_in_a_line_with_the_way_to_bring_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRONY_TEST_REQUIRES", raising=False)
    with pytest.raises(pytest.skip.Exception) as skipped:
        lack("podman", "none is on the PATH")
    reasons = [f"Skipped: {skipped.value}", "Skipped: torch is missing (no)", "Skipped: torch is missing (no)", "other"]
    assert count_missing(reasons) == [
        f"podman is missing: 1 test was skipped; to bring it: {HOW['podman']}",
        "torch is missing: 2 tests were skipped; to bring it: make torch",
    ]


def test_each_thing_that_tests_lack_has_one_word_and_a_way_to_bring_it() -> None:
    named = {name for path in TESTS.rglob("*.py") for name in re.findall(r'\black\(\s*"([^"]+)"', path.read_text())}
    assert {"netns", "redis", "torch"} < named
    assert named - set(HOW) == set()
    assert [name for name in HOW if " " in name] == []  # the line at a run's end is found by one word
    assert "python3.14" in HOW


def test_what_is_required_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_TEST_REQUIRES", "torch,podman")
    with pytest.raises(pytest.fail.Exception, match="required, but none is on the PATH"):
        lack("podman", "none is on the PATH")
