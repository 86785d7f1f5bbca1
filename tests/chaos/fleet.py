"""Servers and agents as processes that can be killed at any instant and started again on what they left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import psutil

from servers.ports import free_port
from servers.process import commands
from servers.waiting import wait_for

# Every process of one fleet carries this, so that whoever is left over can be found.
MARK = "FLEET_MARK"
_CLOCKED = Path(__file__).with_name("clocked.py")
_RECORDED_AGENT = Path(__file__).with_name("recorded_agent.py")


@dataclass
class Process:
    """A command that is started, killed and started again; what it says goes to a file."""

    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    child: subprocess.Popen[bytes] | None = None
    lives: int = 0

    def start(self) -> None:
        self.lives += 1
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                list(self.command), env=dict(self.environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Kill -9, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    @property
    def is_running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""

    def _end(self, sent: signal.Signals) -> int:
        if self.child is None:
            return 0
        if self.child.poll() is None:
            self.child.send_signal(sent)
        return self.child.wait(120)


@dataclass
class Fleet:
    """One home for the server, one for each agent, all below a folder; `mark` is in every process's environment."""

    folder: Path
    database: str = ""
    lease_ttl: str = "3s"
    port: int = 0
    mark: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    server_extra: dict[str, str] = field(default_factory=dict)
    home: Path | None = None
    servers: list[Process] = field(default_factory=list)
    agents: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port = self.port or free_port()
        self.mark = f"{os.getpid()}-{self.port}"

    @property
    def server_home(self) -> Path:
        return self.home or self.folder / "server"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self, home: Path) -> dict[str, str]:
        return os.environ | {"PRONY_HOME": str(home), MARK: self.mark} | self.extra

    def add_server(self, *, port: int | None = None, home: Path | None = None, options: Sequence[str] = ()) -> Process:
        program = [str(_CLOCKED)] if "FLEET_CLOCK" in self.extra else ["-m", "prony"]
        # Who asks is no subject of these tests, and their agents have homes of their own.
        command = [sys.executable, *program, "server", "--port", str(port or self.port), "--no-auth"]
        command += ["--lease-ttl", self.lease_ttl, "--log-format", "json", *options]
        command += ["--database", self.database] if self.database else []
        environment = self.environment(home or self.server_home) | self.server_extra
        server = Process(command, environment, self.folder / f"server-{len(self.servers)}.log")
        self.servers.append(server)
        return server

    def add_agent(self, url: str, *, recorded: bool = True, options: Sequence[str] = ()) -> Process:
        name = f"a{len(self.agents)}"
        program = [str(_RECORDED_AGENT)] if recorded else ["-m", "prony", "agent"]
        command = [sys.executable, *program, "start", "--server", url, "--name", name, "--share-device", *options]
        agent = Process(command, self.environment(self.folder / name), self.folder / f"{name}.log")
        self.agents.append(agent)
        return agent

    def wait_ready(self, *, within_s: float = 120.0, port: int | None = None) -> None:
        wait_for(lambda: answers(f"http://127.0.0.1:{port or self.port}/api/v1/health"), "the server", within_s)

    def leftovers(self) -> list[str]:
        """Return the processes of this fleet that are still there."""
        return [f"{process.pid} {' '.join(command)[:200]}" for process, command in self._marked()]

    def end(self) -> None:
        for process in (*self.agents, *self.servers):
            process.kill()
        for left, _ in self._marked():
            with suppress(psutil.NoSuchProcess):
                left.kill()

    def _marked(self) -> Iterator[tuple[psutil.Process, list[str]]]:
        for process, command in commands(psutil.process_iter()):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get(MARK) == self.mark:
                    yield process, command


@contextmanager
def fleet(folder: Path, **settings: str) -> Iterator[Fleet]:
    made = Fleet(folder, **settings)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.end()


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=30) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
