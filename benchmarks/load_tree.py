"""A command and a mock in; what the command's whole tree of processes cost, and when its requests came, out.

The mock says when the first request came and when the last was answered. CPU time between the two is what sending and
receiving cost; the rest is starting, reading answers and summarising.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_WAITING_S, _LOADED_S, _SHARED_S = 0.01, 0.1, 0.5
_MIB = 1 << 20


class FailedError(Exception):
    """A command that gave no figure; the message is its own last words."""


@dataclass(frozen=True)
class Spent:
    """What one command took, with all its processes: `start_` is until its first request, `phase_` from there to its
    last answer, and `phase_idle` the share of the machine that nobody used in it. `rss_mib` counts pages that processes
    share for each of them, `pss_mib` once."""

    wall_s: float
    cpu_s: float
    first_s: float | None
    start_cpu_s: float
    phase_s: float
    phase_cpu_s: float
    phase_idle: float
    rss_mib: float
    pss_mib: float
    output: str


@dataclass(frozen=True)
class _Seen:
    at_s: float
    cpu_s: float
    idle_s: float
    came: int
    in_flight: int


class _Watch(threading.Thread):
    """Looks at a tree of processes and at the mock's counters until told to stop."""

    def __init__(self, pid: int, url: str) -> None:
        super().__init__(daemon=True)
        self.seen: list[_Seen] = []
        self.rss = self.pss = 0
        self.ended = threading.Event()
        self._pid = pid
        self._url = url

    def run(self) -> None:
        shared_s = 0.0
        place = urlsplit(self._url)
        counters = HTTPConnection(place.hostname or "", place.port, timeout=10)
        while not self.ended.is_set():
            now = time.perf_counter()
            pids = list(_tree(self._pid))
            came, in_flight = _counters(counters) if self._url else (0, 0)
            self.seen.append(_Seen(now, sum(map(_cpu_s, pids)), _idle_s(), came, in_flight))
            self.rss = max(self.rss, _rss(pids))
            if now - shared_s >= _SHARED_S:
                shared_s = now
                self.pss = max(self.pss, sum(map(_pss, pids)))
            self.ended.wait(_LOADED_S if came else _WAITING_S)
        counters.close()

    def phase(self, asked: int) -> tuple[_Seen, _Seen] | None:
        """Return what was seen just before the first request and just after the last answer.

        What comes beyond those that were asked for comes first: some look whether anybody is there."""
        total = max((one.came for one in self.seen), default=0)
        before = [one for one in self.seen if one.came <= (max(0, total - asked) if asked else 0)]
        after = [one for one in self.seen if one.came == total and not one.in_flight]
        if not total or not after or not before:
            return None
        return before[-1], after[0]


def run(
    command: Sequence[str],
    url: str = "",
    *,
    limit_s: float,
    asked: int = 0,
    words: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Spent:
    """Run a command to its end beside the mock at `url`; one that fails, or takes too long, has no figure.

    `asked`: how many requests it was to send; 0 where a time decides."""
    begin = time.perf_counter()
    with subprocess.Popen(
        command,
        env=os.environ | dict(words or {}),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        watch = _Watch(process.pid, url)
        watch.start()
        late = threading.Timer(limit_s, _end, (process.pid,))
        late.start()
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - begin
        late.cancel()
        watch.ended.set()
        watch.join()
        _end(process.pid)  # what it left behind
    if process.returncode:
        why = f"took longer than {limit_s:g} s" if wall_s >= limit_s else _words(output)
        raise FailedError(f"{Path(command[0]).name} ended with {process.returncode}: {why}")
    phase = watch.phase(asked)
    first, last = phase or (_Seen(begin, 0.0, 0.0, 0, 0),) * 2
    return Spent(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        first_s=first.at_s - begin if phase else None,
        start_cpu_s=first.cpu_s,
        phase_s=last.at_s - first.at_s,
        phase_cpu_s=last.cpu_s - first.cpu_s,
        phase_idle=(last.idle_s - first.idle_s) / max((last.at_s - first.at_s) * (os.cpu_count() or 1), _TICK_S),
        rss_mib=watch.rss / _MIB,
        pss_mib=watch.pss / _MIB,
        output=output,
    )


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and all below it."""
    return sum(map(_cpu_s, _tree(pid)))


def _words(output: str) -> str:
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-400:]


def _end(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _counters(connection: HTTPConnection) -> tuple[int, int]:
    """Return how many requests have come to the mock, and how many are being answered."""
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    except (OSError, HTTPException):
        connection.close()
        return 0, 0
    found = dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return int(found.get("prony_mock_requests_total", 0)), int(found.get("prony_mock_in_flight", 0))


def _tree(pid: int) -> Iterator[int]:
    """Give a process and everything below it, as far as it lives."""
    yield pid
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in tasks.read_text().split():
                yield from _tree(int(child))


def _cpu_s(pid: int) -> float:
    """Return what a process used, with its children that have ended."""
    with suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) * _TICK_S
    return 0.0


def _idle_s() -> float:
    """Return the seconds in which a core of the machine had nothing to do, of all cores together."""
    with Path("/proc/stat").open() as lines:
        return sum(map(int, lines.readline().split()[4:6])) * _TICK_S


def _rss(pids: Iterable[int]) -> int:
    """Return the memory of all. A process that was just made is its parent until it becomes a program of its own: the
    very same memory, and so the very same line of figures, counts once."""
    lines = set()
    for pid in pids:
        with suppress(OSError):
            lines.add(Path(f"/proc/{pid}/statm").read_text())
    return sum(int(line.split()[1]) for line in lines if line) * _PAGE


def _pss(pid: int) -> int:
    """Return its memory, with what it shares with others divided among them."""
    with suppress(OSError, IndexError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
