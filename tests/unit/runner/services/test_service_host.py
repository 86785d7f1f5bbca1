"""Starting and ending services, with real processes: what serves is given, what fails is told, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from prony.errors import CapacityError, SutError
from prony.plugins.services.command import Command, CommandOptions
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services import host, process_tree, service_supervisor, site
from prony.runner.services import site as ports
from prony.runner.services.host import Running, Wish, start_service
from servers.waiting import wait_for

HERE = Path(__file__).parent
ODD, OWNER = HERE / "odd_server.py", HERE / "service_owner.py"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds a daemon again for certain")


def odd(mode: str, **more: Any) -> CommandOptions:
    command = [sys.executable, str(ODD), mode, "{port}"]
    return CommandOptions.model_validate({"command": command, "ready": "http://127.0.0.1:{port}/", **more})


def of_service(text: str) -> set[int]:
    """Return the live processes whose command line holds a text: folders and ports are nobody else's."""
    found = set()
    for pid in process_tree.parents():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in line.split(b"\0"):
            found.add(pid)
    return found


def answering(port: int) -> int:
    """Return the pid of whoever answers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
        return int(answer.read())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "service.log"


def start(mode: str, log: Path, *, timeout_s: float = 120.0, **more: Any) -> AbstractContextManager[Running]:
    return start_service(Command(), odd(mode, **more), Wish(log, timeout_s=timeout_s))


def assert_nothing_left(running: Running) -> None:
    assert process_tree.gone(lambda: of_service(str(running.endpoint.port)), within_s=60)
    assert not running.folder.exists()
    with closing(socket.socket()) as probe:
        assert probe.connect_ex(("127.0.0.1", running.endpoint.port)) != 0


def failure(running: Running) -> str:
    """Return why it is there no more, once that is known."""
    while True:
        try:
            running.check()
        except SutError as exc:
            return exc.message


class TestStarting:
    def test_what_is_given_serves(self, log: Path) -> None:
        with start("serve", log) as running:
            assert answering(running.endpoint.port) == running.pid
            assert 0 < running.started_ms < 120_000
            assert running.folder.is_dir()
            assert running.facts == {"server": "odd/1"}
            running.check()
        assert_nothing_left(running)

    def test_it_is_asked_until_it_is_ready(self, log: Path) -> None:
        with start("slow", log) as running:
            assert answering(running.endpoint.port) == running.pid

    def test_what_it_costs_is_of_all_its_processes(self, log: Path) -> None:
        with start("brood", log) as running:
            wait_for(lambda: len(of_service(str(running.endpoint.port))) == 2, "its two processes")
            cpu_s, rss_mib = running.cpu_s(), running.rss_mib()
            assert cpu_s is not None and cpu_s > 0  # noqa: PT018
            assert rss_mib is not None and rss_mib > 10  # noqa: PT018
        assert running.cpu_s() is None
        assert running.rss_mib() is None

    def test_a_program_that_is_missing_is_told_before_anything_is_started(self, log: Path) -> None:
        options = CommandOptions(command="no-such-server --port {port}")
        with (
            pytest.raises(CapacityError, match="no-such-server") as caught,
            start_service(Command(), options, Wish(log)),
        ):
            pass
        assert caught.value.code == "service_missing"
        assert caught.value.hint == "to fix this: start settings.command with a path or a program on PATH"
        assert not log.exists()

    def test_one_that_dies_is_told_with_its_last_words(self, log: Path) -> None:
        with pytest.raises(SutError, match=r"exit code 3.*the moon is in the wrong house") as caught, start("die", log):
            pass
        assert caught.value.code == "service_failed"

    def test_one_that_is_never_ready_is_told_with_what_it_lacks(self, log: Path) -> None:
        options = CommandOptions(command=["/bin/sh", "-c", "echo thinking; exec sleep 86398"])
        failing = pytest.raises(SutError, match=r"not ready within 5 s: .*refused.*thinking")
        with failing as caught, start_service(Command(), options, Wish(log, timeout_s=5)):
            pass
        assert caught.value.code == "service_timeout"

    def test_a_command_before_it_that_fails_is_told(self, log: Path) -> None:
        with pytest.raises(SutError, match="false ended with exit code 1"), start("serve", log, before=["false"]):
            pass

    def test_commands_before_it_run_in_its_folder(self, log: Path) -> None:
        with start("serve", log, before=["touch was-here"]) as running:
            assert (running.folder / "was-here").exists()

    def test_it_is_not_waited_for_when_the_user_wants_to_stop(self, log: Path) -> None:
        starting = start_service(Command(), odd("mute"), Wish(log, stop_asked=lambda: True))
        with pytest.raises(SutError, match="stopped during its start") as caught, starting:
            pass
        assert caught.value.code == "cancelled"

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
    def test_one_that_refuses_to_be_root_is_nobody_and_owns_its_folder(self, log: Path) -> None:
        uid, gid = site.ordinary_user() or (0, 0)
        with start_service(Sleeper(), None, Wish(log)) as running:
            process = Path(f"/proc/{running.pid}")
            assert (process.stat().st_uid, process.stat().st_gid) == (uid, gid)
            assert "Groups:\t \n" in (process / "status").read_text()
            assert {path.name: path.stat().st_uid for path in running.folder.iterdir()} == {"root's": uid, "own": uid}
        assert not running.folder.exists()
        assert of_service(Sleeper.long) == set()


class Sleeper:
    """Any user may run it, and it is always ready."""

    name: ClassVar[str] = "sleeper"
    driver: ClassVar[str] = "http"
    Options: ClassVar[type[Any]] = object
    long: ClassVar[str] = "86399.5"

    def available(self, options: Any) -> str | None:  # noqa: ARG002 - the port's signature
        return None

    def installation(self) -> Installation | None:
        return None

    def start(self, site: ServiceSite) -> Start:
        (site.folder / "root's").mkdir()
        return Start(["/bin/sleep", self.long], Endpoint(), before=[["/bin/mkdir", "own"]], as_nobody=True)

    def ready(self, endpoint: Endpoint, options: Any) -> str | None:  # noqa: ARG002 - the port's signature
        return None

    def facts(self, endpoint: Endpoint, options: Any) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        return {}


class TestPorts:
    def test_a_port_that_another_has_is_tried_no_further(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as other:
            taken = other.getsockname()[1]
            monkeypatch.setattr(ports, "reserve_port", first_giving(taken))
            with start("serve", log) as running:
                assert running.endpoint.port != taken
                assert answering(running.endpoint.port) == running.pid
        assert "Address already in use" in log.read_text()

    def test_another_server_that_answers_in_its_place_is_not_taken_for_it(
        self, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with start("serve", log) as other:
            monkeypatch.setattr(ports, "reserve_port", first_giving(other.endpoint.port))
            with start("serve", log) as running:
                assert running.endpoint.port != other.endpoint.port
                assert answering(running.endpoint.port) == running.pid

    def test_a_server_that_shares_its_address_with_nobody_is_given_a_port_that_is_not_held(self, log: Path) -> None:
        with start("selfish", log) as running:
            assert answering(running.endpoint.port) == running.pid
        assert log.read_text().count("Address already in use") == 1

    def test_when_every_port_is_taken_it_says_so(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as other:
            monkeypatch.setattr(ports, "reserve_port", first_giving(*[other.getsockname()[1]] * host._TRIES))
            starting = start("serve", log, ready="tcp")
            with pytest.raises(SutError, match="failed to start 5 times"), starting:
                pass


def first_giving(*given: int) -> Any:
    """Return what gives these ports before it gives free ones."""
    left = list(given)
    really = ports.reserve_port

    @contextmanager
    def reserved(*, hold: bool = True) -> Iterator[int]:
        if left:
            yield left.pop(0)
            return
        with really(hold=hold) as port:
            yield port

    return reserved


def test_the_use_of_a_service_that_is_no_child_of_ours_is_not_told(log: Path) -> None:
    with start("serve", log) as running:
        assert running.cpu_s() is not None
        elsewhere = replace(running, command=("/usr/bin/docker", "run"))
        assert (elsewhere.cpu_s(), elsewhere.rss_mib()) == (None, None)


class TestEnding:
    @pytest.mark.parametrize("mode", ["serve", "daemon", "brood"])
    def test_nothing_is_left(self, mode: str, log: Path) -> None:
        with start(mode, log) as running:
            assert answering(running.endpoint.port)
            running.check()
        assert_nothing_left(running)

    def test_one_that_ignores_signals_is_killed_after_its_grace(self, log: Path) -> None:
        with start("stubborn", log, grace=0.1) as running:
            pass
        assert_nothing_left(running)

    def test_nothing_is_left_when_the_block_fails(self, log: Path) -> None:
        with pytest.raises(ZeroDivisionError), start("daemon", log) as running:
            _ = 1 / 0
        assert_nothing_left(running)

    def test_one_that_dies_in_the_block_is_told(self, log: Path) -> None:
        with start("serve", log) as running:
            os.kill(running.pid, signal.SIGKILL)
            assert "signal SIGKILL" in failure(running)

    def test_nothing_is_left_when_the_watchdog_is_killed(self, log: Path) -> None:
        with start("daemon", log) as running:
            os.kill(running.usage.root, signal.SIGKILL)
            assert "its supervisor was killed" in failure(running)
        assert_nothing_left(running)

    def test_a_log_that_grows_too_long_keeps_its_beginning_and_its_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(service_supervisor, "LOG_MOST", 1000)
        monkeypatch.setattr(service_supervisor, "LOG_HEAD", 100)
        log = tmp_path / "log"
        log.write_bytes(b"a" * 2000)
        dog = service_supervisor.ServiceSupervisor({"log": str(log)})
        dog.trim_log()
        with log.open("ab") as file:
            file.write(b"z" * 10)
        assert log.read_bytes() == b"a" * 100 + b"\n[1900 bytes were cut here]\n" + b"z" * 10


class TestOwner:
    """The process that owns a service is killed, interrupted, or forks."""

    @contextmanager
    def owner(self, mode: str, log: Path) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, str(OWNER), mode, str(log)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def heard(self, process: subprocess.Popen[str], event: str) -> dict[str, Any]:
        assert process.stdout is not None
        for line in process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message["event"] == event:
                return message
        raise AssertionError(f"it ended before it was {event}")

    @pytest.mark.parametrize("mode", ["serve", "daemon", "brood", "stubborn"])
    def test_the_service_dies_with_an_owner_that_is_killed(self, mode: str, log: Path) -> None:
        with self.owner(mode, log) as process:
            message = self.heard(process, "serving")
            assert answering(message["port"])
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process_tree.gone(lambda: of_service(str(message["port"])), within_s=90)
        folder = Path(message["folder"])
        assert process_tree.gone(lambda: {1} if folder.exists() else set(), within_s=90)

    def test_an_interrupt_while_it_starts_leaves_nothing(self, log: Path) -> None:
        with self.owner("mute", log) as process:
            self.heard(process, "starting")
            below = process_tree.descendants(process.pid)
            assert below
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=120) != 0
            assert process_tree.gone(lambda: below & process_tree.parents().keys(), within_s=90)
