"""Real servers, started as a recipe would: they serve, they tell their settings, and nothing of them is left."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from prony.errors import NotFoundError, SutError
from prony.plugins.services.asking import ask, find_json
from prony.plugins.services.chroma import Chroma
from prony.plugins.services.llamacpp import Llamacpp
from prony.plugins.services.nginx import Nginx
from prony.plugins.services.postgres import Postgres
from prony.plugins.services.postgres_query import RefusedError, query_rows
from prony.plugins.services.redis import Redis
from prony.plugins.services.seaweedfs import Seaweedfs
from prony.plugins.services.signing import ask_as_owner
from prony.ports.driver import Endpoint
from prony.ports.service import Service
from prony.runner.services.host import Running, Wish, start_service
from servers.needs import lack
from servers.packaged import llama_server, program
from servers.waiting import wait_for


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "service.log"


def serving(service: Service, log: Path, **settings: Any) -> AbstractContextManager[Running]:
    """Start a service with what a recipe would say; skip where it is not installed."""
    options = service.Options.model_validate(settings)
    reason = service.available(options)
    if reason is not None:
        lack(service.name, reason)
    return start_service(service, options, Wish(log, log.parent, 180))


def processes(running: Running, least: int = 1) -> list[psutil.Process]:
    """Return a server's processes, when there are so many: one that answers may still be starting some of them."""
    root = psutil.Process(running.pid)
    wait_for(lambda: len(root.children(recursive=True)) + 1 >= least, f"{least} processes of {root}", 60)
    return [root, *root.children(recursive=True)]


def is_alive(process: psutil.Process) -> bool:
    """Is it still there? Where nobody waits for an orphan, it stays as a name when it has ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def assert_gone(running: Running, of_it: list[psutil.Process]) -> None:
    wait_for(lambda: not any(map(is_alive, of_it)), f"the end of {of_it}", 60)
    assert not running.folder.exists()
    with closing(socket.socket()) as probe:
        assert probe.connect_ex((running.endpoint.host, running.endpoint.port)) != 0


class TestRedis:
    def test_its_configuration_is_applied_and_read_back(self, log: Path) -> None:
        config = {"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru", "save": "60 1000", "appendonly": True}
        with serving(Redis(), log, config=config) as running:
            of_it = processes(running)
            assert running.facts["maxmemory"] == str(64 * 2**20)
            assert running.facts["maxmemory-policy"] == "allkeys-lru"
            assert (running.facts["save"], running.facts["appendonly"]) == ("60 1000", "yes")
            assert running.facts["version"]
            assert (running.rss_mib() or 0) > 1
        assert_gone(running, of_it)

    def test_a_password_is_asked_for_and_stands_nowhere(self, log: Path) -> None:
        with serving(Redis(), log, config={"requirepass": "hemlig-grej"}) as running:
            assert running.endpoint.password == "hemlig-grej"
            assert running.facts["requirepass"] == "(set)"
            assert "hemlig-grej" not in " ".join(psutil.Process(running.pid).cmdline())
            assert "hemlig-grej" not in " ".join(running.command)

    def test_a_setting_that_it_does_not_know_is_told_with_its_words(self, log: Path) -> None:
        with pytest.raises(SutError, match="no-such-setting"), serving(Redis(), log, config={"no-such-setting": 1}):
            pass


class TestPostgres:
    def test_its_settings_are_applied_and_read_back(self, log: Path) -> None:
        with serving(Postgres(), log, config={"shared_buffers": "24MB", "fsync": False}) as running:
            of_it = processes(running, 4)
            assert (running.facts["shared_buffers"], running.facts["fsync"]) == ("24MB", "off")
            assert running.facts["version"] == query_rows(running.endpoint, "SHOW server_version")[0][0]
            assert query_rows(running.endpoint, "SELECT 1, NULL, 'ä'") == [["1", None, "ä"]]
            assert of_it[0].uids().effective != 0
        assert_gone(running, of_it)

    def test_nobody_comes_in_without_the_password(self, log: Path) -> None:
        with serving(Postgres(), log) as running:
            wrong = Endpoint(host=running.endpoint.host, port=running.endpoint.port, user="prony", database="postgres")
            with pytest.raises(RefusedError, match="password"):
                query_rows(wrong, "SELECT 1")
            assert running.endpoint.password not in " ".join(running.command)

    def test_a_setting_that_it_does_not_know_is_told_with_its_words(self, log: Path) -> None:
        with pytest.raises(SutError, match="no_such_setting"), serving(Postgres(), log, config={"no_such_setting": 1}):
            pass


class TestNginx:
    def test_it_serves_a_file_of_the_size(self, log: Path) -> None:
        with serving(Nginx(), log, size="4KiB", workers=2, config={"gzip": True}) as running:
            of_it = processes(running, 3)
            assert len(of_it) == 3
            assert len(ask(running.endpoint, "/file", timeout_s=60).body) == 4096
            assert len(ask(running.endpoint, "/", timeout_s=60).body) == 4096
            assert (running.facts["worker_processes"], running.facts["gzip"]) == ("2", "on")
            assert running.facts["version"].startswith("1.")
        assert_gone(running, of_it)

    def test_it_passes_requests_on(self, log: Path, tmp_path: Path) -> None:
        with serving(Nginx(), log, size="1KiB") as behind:
            url = f"http://127.0.0.1:{behind.endpoint.port}"
            with serving(Nginx(), tmp_path / "front.log", proxy=url) as running:
                assert len(ask(running.endpoint, "/file", timeout_s=60).body) == 1024
                assert running.facts["proxy_pass"] == url

    def test_its_workers_are_gone_even_if_the_watchdog_was_killed(self, log: Path) -> None:
        # Its workers forget their environment, and go on when their master is killed.
        with serving(Nginx(), log, workers=2) as running:
            of_it = processes(running, 3)
            os.kill(running.usage.root, signal.SIGKILL)
        assert_gone(running, of_it)

    def test_a_directive_that_it_does_not_know_is_told_with_its_words(self, log: Path) -> None:
        with pytest.raises(SutError, match="no_such_directive"), serving(Nginx(), log, config={"no_such_directive": 1}):
            pass


class TestChroma:
    def test_it_makes_collections(self, log: Path) -> None:
        with serving(Chroma(), log, program=program("chroma")) as running:
            of_it = processes(running)
            assert running.facts["version"]
            assert int(running.facts["max_batch_size"]) > 0
            path = "/api/v2/tenants/default_tenant/databases/default_database/collections"
            made = outgoing(running.endpoint, path, {"name": "things"})
            assert made["name"] == "things"
        assert_gone(running, of_it)


class TestSeaweedfs:
    def test_it_stores_what_its_owner_puts_and_refuses_others(self, log: Path) -> None:
        with serving(Seaweedfs(), log, program=program("weed")) as running:
            of_it = processes(running)
            owner = partial(ask_as_owner, running.endpoint, timeout_s=60)
            assert owner("PUT", "/bucket").status == 200
            assert owner("PUT", "/bucket/thing", b"content").status == 200
            assert owner("GET", "/bucket/thing").body == b"content"
            assert b"prony-ready" not in owner("GET", "/").body
            stranger = Endpoint(running.endpoint.host, running.endpoint.port, user="x", password="y")
            assert ask_as_owner(stranger, "GET", "/bucket/thing", timeout_s=60).status == 403
            assert running.endpoint.password not in " ".join(running.command)
            assert running.facts["volumes_most"] == "20"
        assert_gone(running, of_it)


class TestLlamacpp:
    def test_it_loads_its_model_and_answers(self, log: Path, tmp_path: Path) -> None:
        path, model = llama_server(tmp_path)
        chosen = {"context": 512, "parallel": 2, "threads": 1, "model_name": "tiny"}
        # The recipe's folder is what a relative model is relative to.
        with serving(Llamacpp(), log, program=path, model=model.name, **chosen) as running:
            of_it = processes(running)
            assert running.facts["parallel"] == "2"
            assert running.facts["context_of_slot"] == "256"
            assert running.facts["model_path"] == str(model)
            assert b"llamacpp:" in ask(running.endpoint, "/metrics", timeout_s=60).body
            assert running.metrics_url.endswith("/metrics")
            # Of random weights, now and then one says at once that it has ended.
            asking = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "ignore_eos": True}
            answer = outgoing(running.endpoint, "/v1/chat/completions", asking)
            assert answer["usage"]["completion_tokens"] == 4
        assert_gone(running, of_it)

    def test_a_model_that_is_not_there_is_told(self, log: Path, tmp_path: Path) -> None:
        path, _ = llama_server(tmp_path)
        with (
            pytest.raises(NotFoundError, match="model not found:"),
            serving(Llamacpp(), log, program=path, model="x.gguf"),
        ):
            pass

    def test_a_model_that_is_none_is_told_with_its_words(self, log: Path, tmp_path: Path) -> None:
        path, model = llama_server(tmp_path)
        model.write_bytes(b"GGUF and nothing more")
        with pytest.raises(SutError, match="llamacpp failed"), serving(Llamacpp(), log, program=path, model=model.name):
            pass


def outgoing(endpoint: Endpoint, path: str, document: Any) -> Any:
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=60)
    with closing(connection):
        connection.request("POST", path, json.dumps(document), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())


def test_what_a_server_does_not_tell_is_nothing() -> None:
    assert find_json(Endpoint(host="127.0.0.1", port=1), "/") is None
