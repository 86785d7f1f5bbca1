"""Run a load command once per user and collect the requests that it recorded.

A user is one run of the command, with an empty folder for its requests (`BENCHMARK_OUTPUT_DIR`): a file of JSON lines
there is read, whatever it is called. All of them end with this process, however it ends, or when their time is over.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from prony.error_codes import SEE_LOG
from prony.errors import InputError, SutError
from prony.instruments.request_lines import Log, joined_logs, place_requests, read_log
from prony.instruments.requests import Array
from prony.ports.driver import Endpoint
from prony.runner.services import process_tree
from prony.runner.services.site import with_own_programs

MOST_USERS = 1000
_PAUSE_S = 0.02
_GRACE_S = 2.0
_TAIL = 400


@dataclass(frozen=True)
class CommandOrder:
    """`name` is the job's; `folder` is empty and for the commands' own files, `logs` is where their words go."""

    command: Sequence[str]
    environment: Mapping[str, str]
    endpoint: Endpoint
    users: int
    limit_s: float
    name: str
    folder: Path
    logs: Path

    def client_name(self, number: int) -> str:
        return f"client-{self.name}-{number + 1}"


@dataclass
class _Client:
    number: int
    process: subprocess.Popen[bytes]
    log: Path
    begin_ns: int
    end_ns: int = 0
    status: int = 0
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        self.waiting = threading.Thread(target=self._wait, daemon=True)

    @property
    def is_alive(self) -> bool:
        return self.waiting.is_alive()

    def _wait(self) -> None:
        _, status, usage = os.wait4(self.process.pid, 0)
        self.end_ns = time.perf_counter_ns()
        self.status = os.waitstatus_to_exitcode(status)
        self.process.returncode = self.status
        self.cpu_s = usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Done:
    """When the commands ran, what they wrote down, and why the run failed where it did; `silent` is how many of them
    wrote no request, and `is_cut`: some still ran when their time was over."""

    begin_ns: int
    end_ns: int
    log: Log
    begins: Array
    ends: Array
    cpu_s: float
    failure: SutError | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    silent: int = 0
    is_cut: bool = False


def run_commands(order: CommandOrder, stop_asked: Callable[[], bool], tick: Callable[[], None]) -> Done:
    """Run the command once for each user, all at once, to the end of all."""
    if order.users > MOST_USERS:
        raise InputError(
            f"{order.users} users would start {order.users} processes of the command; the limit is {MOST_USERS}",
            hint="lower load.closed.concurrency",
        )
    clients: list[_Client] = []
    is_late = False
    with guard_processes() as token:
        offset_ns = time.perf_counter_ns() - time.time_ns()
        try:
            for number in range(order.users):
                clients.append(_start_client(order, number, token))
            deadline = time.monotonic() + order.limit_s
            while any(client.is_alive for client in clients) and not stop_asked() and not is_late:
                tick()
                time.sleep(_PAUSE_S)
                is_late = time.monotonic() > deadline
        finally:
            _end(clients)
    return _done(order, clients, offset_ns, is_late=is_late and not stop_asked())


@contextmanager
def guard_processes() -> Iterator[str]:
    """Give a token; whatever carries it is gone after the block, and when this process is killed within it."""
    token = secrets.token_hex(16)
    command = [sys.executable, "-P", "-m", "prony.runner.services.orphan_guard", token]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):  # its end closes the pipe, and waits
        yield token


def _start_client(order: CommandOrder, number: int, token: str) -> _Client:
    """Start one client in a session of its own."""
    name = order.client_name(number)
    output = order.folder / name
    output.mkdir(parents=True)
    order.logs.mkdir(parents=True, exist_ok=True)
    log = order.logs / f"{name}.log"
    with log.open("ab") as words:
        process = subprocess.Popen(
            list(order.command),
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
            cwd=output,
            env={
                **os.environ,
                **_client_variables(order, name, output),
                **order.environment,
                process_tree.TOKEN: token,
            },
            start_new_session=True,
        )
    client = _Client(number, process, log, time.perf_counter_ns())
    client.waiting.start()
    return client


def _client_variables(order: CommandOrder, name: str, output: Path) -> dict[str, str]:
    """Return the variables by which a command knows what it loads and who it is."""
    endpoint = order.endpoint
    scheme = "https" if endpoint.tls else "http"
    return {
        "PATH": with_own_programs(os.environ.get("PATH", "")),
        "SERVICE_NAME": order.name,
        "SERVICE_HOSTNAME": endpoint.host,
        "SERVICE_PORT": str(endpoint.port),
        "SERVICE_URL": f"{scheme}://{endpoint.host}:{endpoint.port}{endpoint.base}",
        "SERVICE_USER": endpoint.user,
        "SERVICE_PASSWORD": endpoint.password,
        "BENCHMARK_ID": order.folder.name,
        "BENCHMARK_OUTPUT_DIR": str(output),
        "CLIENT_NAME": name,
    }


def _end(clients: Sequence[_Client]) -> None:
    """Ask whoever is left to end, then kill them; what came of them is the guard's to end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for client in (one for one in clients if one.is_alive):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(client.process.pid, number)
        deadline = time.monotonic() + _GRACE_S
        for client in clients:
            client.waiting.join(max(0.0, deadline - time.monotonic()))


def _done(order: CommandOrder, clients: Sequence[_Client], offset_ns: int, *, is_late: bool) -> Done:
    logs = [_written(order, client) for client in clients]
    log = joined_logs(logs)
    silent = sum(not one.lines for one in logs)
    cpu_s = sum(client.cpu_s for client in clients)
    begin_ns = min(client.begin_ns for client in clients)
    end_ns = max(client.end_ns or time.perf_counter_ns() for client in clients)
    failure = _failure(order, clients, is_late=is_late, has_requests=bool(log.lines))
    notes = {"clients": _told_of(clients, log, silent)}
    if not log.lines:
        nothing = np.empty(0, dtype=np.int64)
        return Done(begin_ns, end_ns, log, nothing, nothing, cpu_s, failure, notes, silent, is_late)
    begins, ends, window = place_requests(log, offset_ns=offset_ns)
    begin_ns, end_ns = min(window[0], begin_ns), max(window[1], end_ns)
    return Done(begin_ns, end_ns, log, begins, ends, cpu_s, failure, notes, silent, is_late)


def _written(order: CommandOrder, client: _Client) -> Log:
    """Return what one client wrote down."""
    found = read_log(sorted((order.folder / order.client_name(client.number)).rglob("*.jsonl")))
    return replace(found, lines=tuple(replace(line, client=client.number) for line in found.lines))


def _told_of(clients: Sequence[_Client], log: Log, silent: int) -> str:
    unread = f", {log.unread} lines could not be read" if log.unread else ""
    if not log.lines:
        return f"{len(clients)} runs of the command recorded no request{unread}: there are no results"
    coarse = ", their timestamps are whole seconds" if log.has_whole_seconds else ""
    none = f", {silent} of them none" if silent else ""
    return f"{len(clients)} runs of the command recorded {len(log.lines)} requests{none}{coarse}{unread}"


def _failure(order: CommandOrder, clients: Sequence[_Client], *, is_late: bool, has_requests: bool) -> SutError | None:
    if is_late and has_requests:
        return None  # a load that was cut: what was written down until then counts, and is told to be cut
    if is_late:
        said = f"clients timed out after {order.limit_s:g} s and were ended"
        return SutError(said, hint="raise load.duration", code="client_timeout")
    bad = [client for client in clients if client.status != 0]
    if not bad:
        return None
    words = bad[0].log.read_bytes()[-_TAIL:].decode(errors="replace").strip()
    how = f"exit code {bad[0].status}" if bad[0].status > 0 else f"signal {-bad[0].status}"
    said = f"{len(bad)} of {len(clients)} clients failed, the first with {how}; its last output: {words or 'none'}"
    return SutError(said, hint=SEE_LOG, code="client_failed")
