"""What every registered service promises: how it is started, when it is ready, what it lacks, and what it hides."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from prony.errors import PronyError
from prony.model.base import Noun
from prony.ports.driver import Endpoint
from prony.ports.plugins import SERVICES, find_plugins, load_plugin
from prony.ports.service import Service, ServiceSite, Start, starting_option
from prony.runner.containers import NO_ENGINE
from servers.ports import refusing_port

PORT = 23456
# What a recipe must say at least.
NEEDED: dict[str, dict[str, Any]] = {
    "vllm": {"model": "model"},
    "ollama": {"model": "model"},
    "llamacpp": {"model": "model"},
    "transformers": {"model": "model"},
    "command": {"command": [sys.executable, "-m", "http.server", "{port}"]},
}
# Those without the option `image`.
NO_IMAGES = {"command"}


@pytest.fixture(params=sorted(find_plugins(SERVICES)))
def service(request: pytest.FixtureRequest) -> Service:
    made: Service = load_plugin(SERVICES, request.param)()
    return made


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The recipe's folder, with a model in it and programs of every name beside it."""
    (tmp_path / "model").write_bytes(b"weights")
    for name in ("program", "initdb"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def options(service: Service, **more: Any) -> Any:
    return service.Options.model_validate({**NEEDED.get(service.name, {}), **more})


def start(service: Service, base: Path, **more: Any) -> Start:
    """Have it say how it would be started, with a program that need not be its own."""
    own = {} if service.name in NO_IMAGES or "image" in more else {"program": str(base / "program")}
    folder = base / "folder"
    folder.mkdir()
    return service.start(ServiceSite(folder, PORT, options(service, **own, **more), base))


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A container engine, at least by its name."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "podman").write_text("#!/bin/sh\n")
    (place / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    return str(place / "podman")


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port that nobody listens on."""
    with refusing_port() as port:
        yield port


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


class TestEveryService:
    def test_is_registered_by_its_own_name(self, service: Service) -> None:
        assert service.name in find_plugins(SERVICES)
        assert service.driver

    def test_describes_every_option_and_refuses_unknown_ones(self, service: Service) -> None:
        assert issubclass(service.Options, Noun)
        assert [name for name, field in service.Options.model_fields.items() if not field.description] == []
        with pytest.raises(ValidationError, match="no_such_option"):
            options(service, no_such_option=1)

    def test_says_in_a_sentence_what_is_missing_and_how_to_get_it(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        missing = {"command": "no-such-program"} if service.name == "command" else {"program": "no-such-program"}
        reason = service.available(options(service, **missing))
        assert reason is not None
        assert re.search(r"no-such-program; to fix this: .{10}", reason)

    def test_says_so_at_once_and_starts_nothing(self, service: Service) -> None:
        costs = []
        for _ in range(20):
            begin = time.perf_counter()
            reason = service.available(options(service))
            costs.append(time.perf_counter() - begin)
        assert min(costs) < 0.1
        assert reason is None or len(reason.split()) > 3

    def test_names_what_starts_it_where_and_only_where_it_can_be_started(self, service: Service) -> None:
        installed = service.installation()
        reason = service.available(type(service).Options.model_construct())
        if service.name == "command":
            assert installed is None  # only a recipe says what it is
            return
        assert (installed is None) is (reason is not None)
        if installed is not None:
            assert installed.path.is_file()
            assert not (installed.version and installed.ask)
            assert [str(installed.path)] == list(installed.ask[:1]) or not installed.ask

    def test_says_which_options_name_another_program_or_an_image(self, service: Service) -> None:
        named = {
            name: word
            for name, field in service.Options.model_fields.items()
            if (word := (field.json_schema_extra or {}).get("starts"))
        }
        assert set(named.values()) <= {"program", "image"}
        own = {"command": "program"} if service.name == "command" else {"program": "program", "image": "image"}
        assert own.items() <= named.items()
        assert starting_option(service.Options, {}) is None
        assert all(starting_option(service.Options, {name: "x"}) == word for name, word in named.items())

    def test_is_started_in_the_foreground_on_loopback_and_its_port(self, service: Service, base: Path) -> None:
        told = start(service, base)
        assert all(isinstance(word, str) for word in told.command)
        assert Path(told.command[0]).is_absolute()
        assert (told.endpoint.host, told.endpoint.port) == ("127.0.0.1", PORT)
        files = [path.read_text() for path in (base / "folder").iterdir() if path.suffix == ".conf"]
        words = [*told.command, *told.environment.values(), *files]
        assert any(str(PORT) in word for word in words)
        assert not any("0.0.0.0" in word for word in words)

    def test_hides_its_secrets(self, service: Service, base: Path) -> None:
        told = start(service, base)
        secrets = {told.endpoint.password} - {""}
        assert not [word for word in told.command for secret in secrets if secret in word]
        open_files = [path for path in (base / "folder").rglob("secret*") if path.stat().st_mode & 0o077]
        assert open_files == []

    def test_is_run_in_a_container_of_an_image_on_the_same_port(
        self, service: Service, base: Path, engine: str
    ) -> None:
        if service.name in NO_IMAGES:
            pytest.skip("its command may run a container itself")
        told = start(service, base, image="example.org/image:1", container_arguments=["--cpus", 2])
        command = list(told.command)
        at = command.index("example.org/image:1")
        assert command[:3] == [engine, "run", "--rm"]
        assert f"--publish=127.0.0.1:{PORT}:{PORT}" in command[:at]
        assert f"--volume={base}/folder:{base}/folder" in command[:at]
        assert command[at - 2 : at] == ["--cpus", "2"]
        name = next(word for word in command if word.startswith("--name=")).removeprefix("--name=")
        assert told.clear == [[engine, "rm", "--force", "--volumes", name]]
        assert [word for word in command if told.endpoint.password and told.endpoint.password in word] == []
        assert {f"--env={name}" for name in told.environment} <= set(command[:at])
        assert not told.as_nobody

    def test_says_that_an_image_needs_an_engine(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        if service.name in NO_IMAGES:
            pytest.skip("its command may run a container itself")
        monkeypatch.setenv("PATH", "/nonexistent")
        assert service.available(options(service, image="example.org/image:1")) == NO_ENGINE

    def test_is_not_ready_where_nobody_listens(self, service: Service, nobody: int) -> None:
        reason = service.ready(Endpoint(host="127.0.0.1", port=nobody), options(service))
        assert reason is not None
        assert len(reason.split()) > 3

    def test_asks_for_a_second_at_most(self, service: Service, silent: int) -> None:
        wanted = {"ready": "http://127.0.0.1:{port}/"} if service.name == "command" else {}

        def answers_in_time() -> bool:
            begin = time.perf_counter()
            assert service.ready(Endpoint(host="127.0.0.1", port=silent), options(service, **wanted)) is not None
            return time.perf_counter() - begin < 8

        # Once in three attempts, on a machine that may be busy; one that asked for longer would take 20 s.
        assert any(answers_in_time() for _ in range(3))

    def test_a_server_that_is_gone_when_it_is_asked_for_its_settings_is_no_stranger(
        self, service: Service, nobody: int
    ) -> None:
        try:
            facts = service.facts(Endpoint(host="127.0.0.1", port=nobody), options(service))
        except (OSError, PronyError):
            return
        assert facts == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root is refused")
@pytest.mark.parametrize("name", ["postgres", "nginx"])
def test_those_that_refuse_root_are_given_to_nobody(name: str, base: Path) -> None:
    assert start(load_plugin(SERVICES, name)(), base).as_nobody


def test_the_page_about_services_has_a_line_for_each_and_every_setting() -> None:
    page = (Path(__file__).parents[2] / "docs" / "services.md").read_text()
    for name in find_plugins(SERVICES):
        made = load_plugin(SERVICES, name)()
        assert f"| `{name}` | `{made.driver}`" in page
        lines = [line for line in page.splitlines() if line.startswith((f"| `{name}` |", "| `"))]
        own = set(type(made).Options.model_fields)
        assert sorted(setting for setting in own if not any(f"`{setting}`" in line for line in lines)) == []


@pytest.mark.parametrize("name", sorted(find_plugins(SERVICES)))
def test_says_of_itself_in_a_line_what_it_is_and_what_it_lacks_before_a_recipe_tells_more(name: str) -> None:
    kind = load_plugin(SERVICES, name)
    assert kind.__doc__
    reason = kind().available(kind.Options.model_construct())
    assert reason is None or "to get" in reason
