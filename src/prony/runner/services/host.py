"""Run a service for as long as a block runs, from the moment that it really serves.

The server is the child of `prony.runner.services.service_supervisor`, which tells its life on a pipe and ends all of it
when that pipe closes: at the end of the block, or because this process was killed.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.error_codes import SEE_LOG
from prony.errors import CapacityError, PronyError, SutError
from prony.ports.driver import Endpoint
from prony.ports.service import Service, ServiceSite, Start
from prony.runner.containers import DAEMONS
from prony.runner.services import process_tree, site
from prony.runner.services import site as ports
from prony.runner.services.usage import Usage

_TRIES = 5
_WATCHDOG = ("-P", "-m", "prony.runner.services.service_supervisor")
# What leads another interpreter astray, and what lets our owner speak to a server.
_ASTRAY = {"PRONY_TOKEN", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
_TAIL = 4000
_END_S = 120.0  # longer than the supervisor needs at its worst
_LEAST_PAUSE_S, _MOST_PAUSE_S = 0.001, 0.1
_PAUSE_SHARE = 0.02  # of the time that the start took so far: how exactly its length is known


class _TakenError(Exception):
    """Somebody else has the port."""


@dataclass(frozen=True)
class Wish:
    """What a start must keep to: how long it may take, who may stop it, where its words go; `port` is the only one that
    the service can have, None: whichever is free."""

    log: Path
    base: Path = Path()
    timeout_s: float = 120.0
    stop_asked: Callable[[], bool] = lambda: False
    port: int | None = None
    is_shared: bool = False  # with other machines


@dataclass(frozen=True)
class Running:
    """A service that serves. `started_ms` is from its program's start until it was ready; `facts` are its own words."""

    endpoint: Endpoint
    facts: Mapping[str, str]
    command: tuple[str, ...]
    pid: int
    metrics_url: str
    started_ms: float
    folder: Path
    usage: Usage
    check: Callable[[], None] = field(repr=False)  # raises SutError when the service is there no more
    has_own_port: bool = False  # and not the one that it was given: the next start will want the same

    @property
    def is_run_by_daemon(self) -> bool:
        """Do its processes belong to a container engine's daemon, and not to us?"""
        return bool(self.command) and Path(self.command[0]).name in DAEMONS

    def cpu_s(self) -> float | None:
        """Return the CPU seconds of the whole service since it began; None where nobody tells, as of
        what is no child of ours."""
        return None if self.is_run_by_daemon else self.usage.cpu_s()

    def rss_mib(self) -> float | None:
        """Return the memory of all its processes now; pages that they share count for each."""
        return None if self.is_run_by_daemon else self.usage.rss_mib()


@contextmanager
def start_service(service: Service, options: Any, wish: Wish) -> Iterator[Running]:
    """Start a service as it is wished and give it when it is ready, on any port or on the one that it must have.

    Leaving the block ends it, whatever became of it."""
    check_startable(service, options)
    with ExitStack() as block:
        yield _first_that_serves(service, options, wish, block)


def check_startable(service: Service, options: Any) -> None:
    """Refuse a service that this machine has no program, package or container engine for. It starts nothing.

    Raises:
        CapacityError: It says what is missing, and how to get it.
    """
    if sys.platform == "win32":
        hint = "start the server yourself and set workload.endpoint"
        raise CapacityError("Prony can start services only on Linux and macOS", hint=hint, code="service_missing")
    reason = service.available(options)
    if reason is not None:
        what, joint, how = reason.partition("; to ")
        other = "install what is missing, or set workload.settings.image, or workload.endpoint to a server that runs"
        raise CapacityError(
            f"{service.name} cannot be started on this machine: {what}", hint=f"to {how}" if joint else other,
            code="service_missing",
        )  # fmt: skip


def _first_that_serves(service: Service, options: Any, wish: Wish, block: ExitStack) -> Running:
    reason = ""
    tries = _TRIES if wish.port is None else 1
    for attempt in range(tries):
        with ExitStack() as trying:
            host = trying.enter_context(ServiceHost(service, options, wish))
            # A server that does not share addresses cannot listen on a port that is held for it.
            with ports.reserve_port(hold=attempt == 0) as free:
                try:
                    running = host.start(wish.port or free)
                except _TakenError as exc:
                    reason = str(exc)
                    continue
            block.push(trying.pop_all())
            return running
    raise SutError(
        f"{service.name} failed to start {tries} times because its port was in use: {reason}",
        hint=SEE_LOG,
        code="service_failed",
    )


class ServiceHost:
    """One start of a service. Leaving the block ends it."""

    def __init__(self, service: Service, options: Any, wish: Wish) -> None:
        self._service, self._options, self._wish = service, options, wish
        self._token = secrets.token_hex(16)
        self._folder = site.made_folder()
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._events: dict[str, dict[str, Any]] = {}
        self._log_begin = wish.log.stat().st_size if wish.log.exists() else 0

    def __enter__(self) -> ServiceHost:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, port: int) -> Running:
        """Return the service when it serves."""
        deadline = time.monotonic() + self._wish.timeout_s
        start = self._service.start(
            ServiceSite(self._folder, port, self._options, self._wish.base, self._wish.is_shared)
        )
        pid = self._launch(start)
        usage = Usage(pid)
        while "started" not in self._events:
            self._listen(_MOST_PAUSE_S)
            self._check(deadline, "its preparation takes too long", port)
        begin_ns = int(self._events["started"]["begin_ns"])
        usage.begin()
        self._wait_ready(start, begin_ns, deadline, port)
        ready_ns = time.perf_counter_ns()
        served = start.endpoint.port or port  # a command may have a port of its own
        if not start.clear and _is_another(served, pid):
            raise _TakenError(f"another server already listens on {served}")
        return Running(
            endpoint=start.endpoint,
            facts=self._facts(start.endpoint),
            command=tuple(start.command),
            pid=int(self._events["started"]["pid"]),
            metrics_url=start.metrics_url,
            started_ms=(ready_ns - begin_ns) / 1e6,
            folder=self._folder,
            usage=usage,
            check=self.check,
            has_own_port=served != port,
        )

    def _facts(self, endpoint: Endpoint) -> dict[str, str]:
        try:
            return dict(self._service.facts(endpoint, self._options))
        except OSError as exc:
            raise self._failure(f"its settings could not be read: {exc}") from exc

    def _launch(self, start: Start) -> int:
        who = site.ordinary_user() if start.as_nobody else None
        if who is not None:
            site.give_to_user(self._folder, *who)
        order = {
            "command": [str(word) for word in start.command],
            "before": [[str(word) for word in command] for command in start.before],
            "environment": _environment(start, self._folder if who else None),
            "folder": str(self._folder),
            "log": str(self._wish.log.absolute()),
            "uid": who[0] if who else None,
            "gid": who[1] if who else None,
            "stop_signal": int(start.stop_signal),
            "grace_s": start.grace_s,
            "clear": [list(command) for command in start.clear],
            "token": self._token,
            "parent": os.getpid(),
        }
        self._wish.log.parent.mkdir(parents=True, exist_ok=True)
        supervisor = subprocess.Popen(
            [sys.executable, *_WATCHDOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        self._watchdog = supervisor
        assert supervisor.stdin is not None
        with suppress(BrokenPipeError):  # then it was killed already, and who waits for it is told so
            supervisor.stdin.write(json.dumps(order).encode() + b"\n")
            supervisor.stdin.flush()
        return supervisor.pid

    def _wait_ready(self, start: Start, begin_ns: int, deadline: float, port: int) -> None:
        lacks: str | None = "no request was sent yet"
        while lacks is not None:
            self._check(deadline, lacks, port)
            lacks = self._service.ready(start.endpoint, self._options)
            if lacks is not None:
                so_far_s = (time.perf_counter_ns() - begin_ns) / 1e9
                self._listen(min(_MOST_PAUSE_S, max(_LEAST_PAUSE_S, _PAUSE_SHARE * so_far_s)))
        self._listen(0)  # who answered may be another server, while ours found its port taken
        self._check(deadline, "", port)

    def _check(self, deadline: float, lacks: str, port: int) -> None:
        """Raise when there is no use in waiting any longer."""
        try:
            self.check()
        except SutError as exc:
            if ports.says_taken(self._last_log_lines()) or ports.is_port_taken(port):
                raise _TakenError(exc.message) from exc
            raise
        if self._wish.stop_asked():
            raise SutError(f"{self._service.name} was stopped during its start", code="cancelled")
        if time.monotonic() > deadline:
            raise SutError(
                f"{self._service.name} was not ready within {self._wish.timeout_s:g} s: {lacks}{self._tail()}",
                hint=SEE_LOG,
                code="service_timeout",
            )

    def check(self) -> None:
        """Raise SutError where the service is there no more, with what it said last."""
        self._listen(0)
        gone, failed = self._events.get("gone"), self._events.get("failed")
        if gone is not None:
            raise self._failure(f"it ended unexpectedly ({gone['status']})")
        if failed is not None:
            raise self._failure(str(failed["reason"]))
        if self._watchdog is not None and self._watchdog.poll() is not None:
            raise self._failure("its supervisor was killed")

    def _failure(self, reason: str) -> PronyError:
        message = f"{self._service.name} failed: {reason}{self._tail()}"
        return SutError(message, hint=SEE_LOG, code="service_failed")

    def _tail(self) -> str:
        said = self._last_log_lines().strip()
        return f"; its last output: {said}" if said else "; it printed nothing"

    def _last_log_lines(self) -> str:
        """Return the last of what this start wrote into the log."""
        if not self._wish.log.exists():
            return ""
        with self._wish.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            begin = self._log_begin if self._log_begin < size else 0
            file.seek(max(begin, size - _TAIL))
            return file.read().decode(errors="replace")

    def _listen(self, within_s: float) -> None:
        """Take what the supervisor tells, or let the time pass."""
        if self._watchdog is None or self._watchdog.stdout is None:
            return
        pipe = self._watchdog.stdout.fileno()
        ready, _, _ = select.select([pipe], [], [], within_s)
        if not ready:
            return
        piece = os.read(pipe, 2**16)
        if not piece:  # it has ended: there is nothing more to wait for
            with suppress(subprocess.TimeoutExpired):
                self._watchdog.wait(timeout=_MOST_PAUSE_S)
        *lines, self._heard = (self._heard + piece).split(b"\n")
        for message in map(json.loads, lines):
            self._events.setdefault(message["event"], message)

    def _orphans(self) -> set[int]:
        """Return what is left of a service without supervisor: some servers write over their environment, some leave
        their session, few do both."""
        session = self._events.get("started", {}).get("pid")
        return process_tree.carrying(self._token) | (process_tree.in_session(session) if session else set())

    def close(self) -> None:
        """End the service and all that came of it; its folder is removed."""
        supervisor, self._watchdog = self._watchdog, None
        if supervisor is not None:
            for pipe in (supervisor.stdin, supervisor.stdout):
                if pipe is not None:
                    pipe.close()
            try:
                supervisor.wait(timeout=_END_S)
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()
            if supervisor.returncode != 0:  # it was killed before it could end the service
                process_tree.kill_all(self._orphans, within_s=_END_S)
        site.remove_folder(self._folder)


def _is_another(port: int, supervisor: int) -> bool:
    """Did another server answer, beside ours or in its place? Ours may just have ended, its port being taken."""
    is_foreign = ports.is_foreign(port, process_tree.descendants(supervisor))
    return is_foreign or (sys.platform == "linux" and not list(process_tree.descendants(supervisor)))


def _environment(start: Start, home: Path | None) -> dict[str, str]:
    """Return the service's environment: ours, less what leads another interpreter astray, and what it asks for.

    A user without a home gets the service's folder."""
    common = {name: value for name, value in os.environ.items() if name not in _ASTRAY}
    own = {"HOME": str(home), "USER": site.ORDINARY, "LOGNAME": site.ORDINARY} if home else {}
    return {**common, **own, **start.environment}
