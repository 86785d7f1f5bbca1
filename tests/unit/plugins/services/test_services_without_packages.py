"""Services whose programs no package brings, against servers that answer as theirs are documented to."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from prony.errors import NotFoundError, SutError
from prony.plugins.services.asking import ask
from prony.plugins.services.minio import Minio
from prony.plugins.services.ollama import Ollama
from prony.plugins.services.qdrant import Qdrant
from prony.plugins.services.vllm import Vllm
from prony.ports.driver import Endpoint
from prony.ports.service import Service, ServiceSite
from prony.runner.services.host import Running, Wish, start_service
from servers.canned import Answer, Canned, canned, document
from servers.waiting import wait_for

PRETEND = Path(__file__).with_name("pretend_server.py")


@pytest.fixture
def pretend(tmp_path: Path) -> Any:
    """Start a service with a program that pretends to be its own."""

    def start(service: Service, **settings: Any) -> AbstractContextManager[Running]:
        path = tmp_path / service.name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {PRETEND} {service.name} "$@"\n')
        path.chmod(0o755)
        options = service.Options.model_validate({"program": str(path), **settings})
        return start_service(service, options, Wish(tmp_path / "log", tmp_path, 30))

    return start


def at(server: Canned) -> Endpoint:
    return Endpoint(host="127.0.0.1", port=int(server.url.rpartition(":")[2]))


class TestQdrant:
    def test_it_is_configured_by_its_environment(self, pretend: Any) -> None:
        with pretend(Qdrant(), config={"storage.performance.max_search_threads": 4}) as running:
            assert running.facts == {"version": "1.15.0", "commit": "abc", "cores": "2", "cpu_flags": "sse"}
            assert running.metrics_url == f"http://127.0.0.1:{running.endpoint.port}/metrics"

    def test_commands_before_it_are_run_to_their_end_first(self, pretend: Any, tmp_path: Path) -> None:
        marker = tmp_path / "was here"
        with pretend(Qdrant(), before=[f"touch '{marker}'"]):
            assert marker.exists()
        with pytest.raises(SutError, match="false ended with exit code 1"), pretend(Qdrant(), before=["false"]):
            pass

    def test_dotted_settings_become_variables(self, tmp_path: Path) -> None:
        config = {"storage.performance.max_search_threads": 4, "service.api_key": "geheim", "log_level": "WARN"}
        options = Qdrant.Options.model_validate({"program": sys.executable, "config": config})
        start = Qdrant().start(ServiceSite(tmp_path, 6000, options))
        assert start.environment["QDRANT__STORAGE__PERFORMANCE__MAX_SEARCH_THREADS"] == "4"
        assert start.environment["QDRANT__TELEMETRY_DISABLED"] == "true"
        assert start.environment["QDRANT__STORAGE__STORAGE_PATH"] == f"{tmp_path}/storage"
        assert start.environment["QDRANT__SERVICE__GRPC_PORT"] != "6000"
        assert start.endpoint.password == "geheim"

    def test_it_is_not_ready_before_its_shards_are(self) -> None:
        with canned() as server:
            server.at("GET /readyz", Answer(b"some shards are not ready", 503), Answer(b"all shards are ready"))
            options = Qdrant.Options()
            assert "503 some shards are not ready" in (Qdrant().ready(at(server), options) or "")
            assert Qdrant().ready(at(server), options) is None


class TestMinio:
    def test_it_stores_an_object_before_it_is_called_ready(self, pretend: Any) -> None:
        with pretend(Minio()) as running:
            assert running.facts == {"version": "2025-04-22T22:12:26Z", "commit": "abc"}
            assert ask(running.endpoint, "/prony-ready/ready").status == 404

    def test_its_keys_are_new_each_time_and_stand_in_no_command_line(self, tmp_path: Path) -> None:
        options = Minio.Options(program=sys.executable)
        starts = [Minio().start(ServiceSite(tmp_path, 6000, options)) for _ in range(2)]
        assert len({start.endpoint.password for start in starts}) == 2
        for start in starts:
            assert start.environment["MINIO_ROOT_USER"] == start.endpoint.user
            assert start.environment["MINIO_ROOT_PASSWORD"] == start.endpoint.password
            assert not {start.endpoint.user, start.endpoint.password} & set(start.command)

    def test_keys_of_the_recipe_are_those_of_the_server_and_of_its_clients(self, tmp_path: Path) -> None:
        keys = {"MINIO_ROOT_USER": "me", "MINIO_ROOT_PASSWORD": "not-a-secret"}
        options = Minio.Options.model_validate({"program": sys.executable, "environment": keys})
        start = Minio().start(ServiceSite(tmp_path, 6000, options))
        assert (start.endpoint.user, start.endpoint.password) == ("me", "not-a-secret")
        assert {name: start.environment[name] for name in keys} == keys
        assert "not-a-secret" not in " ".join(start.command)

    def test_it_is_not_ready_while_it_refuses_objects(self) -> None:
        with canned() as server:
            server.at("GET /minio/health/ready", Answer())
            server.at("GET /", Answer(b"<Buckets/>"))
            server.at("PUT /prony-ready", Answer(b"<Code>XMinioServerNotInitialized</Code>", 503))
            assert "XMinioServerNotInitialized" in (Minio().ready(at(server), Minio.Options()) or "")

    def test_it_is_asked_to_write_when_it_answers_and_not_before(self) -> None:
        """A question to write that was given up may be carried out later, when a load has begun."""
        with canned() as server:
            server.at("GET /minio/health/ready", Answer())
            server.at("GET /", Answer(b"<Code>SlowDown</Code>", 503))
            assert "SlowDown" in (Minio().ready(at(server), Minio.Options()) or "")
            assert {one.method for one in server.requests} == {"GET"}

    def test_it_is_not_ready_while_the_bucket_of_the_check_is_there(self) -> None:
        with canned() as server:
            server.at("GET /minio/health/ready", Answer())
            server.at("PUT /prony-ready", Answer(b"<Code>BucketAlreadyOwnedByYou</Code>", 409))
            server.at("PUT /prony-ready/ready", Answer())
            server.at("GET /prony-ready/ready", Answer(b"prony"))
            server.at("DELETE /prony-ready/ready", Answer(b"", 204))
            server.at("DELETE /prony-ready", Answer(b"", 404))
            none = Answer(b"<Buckets/>")
            server.at("GET /", none, Answer(b"<Name>prony-ready</Name>"), none)
            assert Minio().ready(at(server), Minio.Options()) == "the bucket of this check is still there"
            assert Minio().ready(at(server), Minio.Options()) is None


class TestOllama:
    def test_its_model_is_loaded_before_it_is_called_ready(self, pretend: Any, tmp_path: Path) -> None:
        (tmp_path / "models").mkdir()
        with pretend(Ollama(), model="tiny", models="models") as running:
            assert running.facts["version"] == "0.12.6"
            assert running.facts["quantization"] == "Q4_K_M"
            assert running.facts["model"] == "tiny:latest"

    def test_a_model_that_was_not_pulled_is_told_at_once_with_the_line_that_pulls_it(self, pretend: Any) -> None:
        with (
            pytest.raises(NotFoundError, match="model not found in ollama: absent:1b") as caught,
            pretend(Ollama(), model="absent:1b"),
        ):
            pass
        assert caught.value.hint == "ollama pull absent:1b"

    def test_a_model_that_it_cannot_load_is_told_with_its_words(self) -> None:
        service, options = Ollama(), Ollama.Options(model="tiny")
        with canned() as server:
            server.at("GET /api/version", document({"version": "0.12.6"}))
            server.at("GET /api/ps", document({"models": []}))
            server.at("GET /api/tags", document({"models": [{"name": "tiny:latest"}]}))
            server.at("POST /api/generate", document({"error": "model requires more system memory"}, 500))
            assert service.ready(at(server), options) == "tiny is not loaded yet"
            with pytest.raises(SutError, match="requires more system memory"):
                wait_for(lambda: service.ready(at(server), options) != "tiny is not loaded yet", "the refusal")

    def test_its_models_stay_where_they_are(self, tmp_path: Path) -> None:
        (tmp_path / "models").mkdir()
        options = Ollama.Options(program=sys.executable, model="tiny", models="models")
        start = Ollama().start(ServiceSite(tmp_path / "folder", 6000, options, tmp_path))
        assert start.environment["OLLAMA_MODELS"] == str(tmp_path / "models")
        assert start.environment["OLLAMA_HOST"] == "127.0.0.1:6000"
        assert start.environment["OLLAMA_NOPRUNE"] == "1"


class TestVllm:
    def test_its_model_is_listed_before_it_is_called_ready(self, pretend: Any, tmp_path: Path) -> None:
        (tmp_path / "weights").mkdir()
        with pretend(Vllm(), model="weights", arguments=["--max-model-len", 512]) as running:
            assert running.facts["version"] == "0.32.0"
            assert running.facts["model_id"] == str(tmp_path / "weights")
            assert running.facts["model_max_model_len"] == "512"
            assert running.command[-2:] == ("--max-model-len", "512")

    def test_it_is_not_ready_while_another_model_is_listed(self) -> None:
        with canned() as server:
            server.at("GET /health", Answer())
            server.at("GET /v1/models", document({"data": [{"id": "other"}]}))
            assert Vllm().ready(at(server), Vllm.Options(model="mine")) == "mine is not listed"

    def test_a_local_model_needs_no_network_and_a_named_one_does(self, tmp_path: Path) -> None:
        (tmp_path / "weights").mkdir()
        (tmp_path / "vllm").touch(mode=0o755)
        python = str(tmp_path / "python")
        local = Vllm().start(ServiceSite(tmp_path, 6000, Vllm.Options(model="weights", python=python), tmp_path))
        named = Vllm().start(ServiceSite(tmp_path, 6000, Vllm.Options(model="org/name", python=python), tmp_path))
        assert list(local.command[:3]) == [str(tmp_path / "vllm"), "serve", str(tmp_path / "weights")]
        assert local.environment["HF_HUB_OFFLINE"] == "1"
        assert named.command[2] == "org/name"
        assert "HF_HUB_OFFLINE" not in named.environment
