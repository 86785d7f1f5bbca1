"""Start scripts, one execution after another, tell how each went, and end all of it when standard input closes.

`python -P -m prony.kinds.script.runner.script_supervisor RUNNER TOKEN` stands between the runner and what it executes.
It reads one order a line on standard input, starts the processes of the execution in sessions of their own with their
output in files, and tells on standard output when each ended. The first that fails takes the others with it.

The time of an execution is taken here: from just before its process is started until it has been waited for. So it is
started by `posix_spawn`, which copies no memory, and by a process that was awake just before: it has started an empty
program a few times, which also tells what starting and ending a program costs here. Standard library only.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from prony.runner.services import process_tree
from prony.runner.supervisor import TICK_S, Supervisor, tell

_GRACE_S = 5.0  # for a process that is asked to end
_KILL_S = 30.0
_CLEAR_S = 60.0
# A short execution is over before the runner, woken by what it is told, would compete with it for a CPU.
_UNTOLD_S = 0.02
_EMPTY_STARTS = 3
# Python ignores these; what it starts shall not.
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ) if sys.platform != "win32" else ()


@dataclass(frozen=True)
class PreparedProcess:
    """A process that is about to be started: all that takes time is done."""

    path: bytes
    argv: list[bytes]
    environment: dict[bytes, bytes]
    folder: str
    descriptors: tuple[int, int, int]

    def start(self) -> int:
        """Start it in this process's current folder; return its number."""
        copies = [(os.POSIX_SPAWN_DUP2, have, want) for want, have in enumerate(self.descriptors)]
        return os.posix_spawn(
            self.path, self.argv, self.environment, file_actions=copies, setsid=True, setsigdef=_DEFAULT_SIGNALS
        )


class ScriptSupervisor(Supervisor):
    """Executes one order after another. An order has `processes`: argv, environment, folder, out and err of each; and
    `clear`, commands that remove what they leave to a container engine when they are killed."""

    def __init__(self, order: dict[str, Any], runner_fd: int | None) -> None:
        super().__init__(order, runner_fd)
        self._null = os.open(os.devnull, os.O_RDWR)
        self._empty = _empty_program(self._null)
        self._pids: list[int] = []
        self._told: set[int] = set()

    def serve(self) -> None:
        self.get_ready()
        tell("ready", pid=os.getpid())
        while (order := self.next_order()) is not None:
            if self._execute(order["processes"]):
                self._clear(order["clear"])
                return

    def _execute(self, processes: list[dict[str, Any]]) -> bool:
        """Carry out one execution; return whether the runner wants no more."""
        is_unwanted, empty_ns, begin_ns = False, None, time.perf_counter_ns()
        self._pids, self._told = [], set()
        try:
            with ExitStack() as block:
                programs = self._prepare(processes, block)
                if programs is not None:
                    empty_ns = self._time_empty_start()
                    self.forget_children()
                    begin_ns = self._start(programs)
            if len(self._pids) == len(processes):
                is_unwanted = self._watch(begin_ns)
        finally:
            self._end(begin_ns, empty_ns)
            self.forget_children()
        return is_unwanted

    def _clear(self, commands: list[list[str]]) -> None:
        """Remove what nobody else will: the runner may have been killed."""
        for command in commands:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(
                    command, stdin=self._null, stdout=self._null, stderr=self._null, timeout=_CLEAR_S, check=False
                )

    def _prepare(self, processes: list[dict[str, Any]], block: ExitStack) -> list[PreparedProcess] | None:
        """Open the files of all processes; None, and the reason is told, where one cannot be started."""
        found = []
        for rank, process in enumerate(processes):
            try:
                logs = (_open_log(process["out"], block), _open_log(process["err"], block))
                found.append(self._program(process, logs))
            except OSError as exc:
                tell("failed", rank=rank, reason=exc.strerror or str(exc))
                return None
        return found

    def _program(self, process: dict[str, Any], logs: tuple[int, int]) -> PreparedProcess:
        environment = process["environment"] | {process_tree.TOKEN: self.order["token"]}
        os.chdir(process["folder"])
        return PreparedProcess(
            path=_find_program(process["argv"][0], environment),
            argv=[os.fsencode(word) for word in process["argv"]],
            environment={os.fsencode(name): os.fsencode(text) for name, text in environment.items()},
            folder=process["folder"],
            descriptors=(self._null, *logs),
        )

    def _start(self, programs: list[PreparedProcess]) -> int:
        """Start all; return when the first was begun."""
        begin_ns = 0
        for rank, program in enumerate(programs):
            try:
                os.chdir(program.folder)
                begin_ns = begin_ns or time.perf_counter_ns()
                self._pids.append(program.start())
            except OSError as exc:
                tell("failed", rank=rank, reason=exc.strerror or str(exc))
                break
        os.chdir("/")
        return begin_ns or time.perf_counter_ns()

    def _time_empty_start(self) -> int | None:
        """Return the least time that starting and ending an empty program takes; None where there is none to start."""
        if self._empty is None:
            return None
        found = []
        for _ in range(_EMPTY_STARTS):
            begin_ns = time.perf_counter_ns()
            pid = self._empty.start()
            while pid not in self.statuses:
                self.is_unwanted(TICK_S)
            found.append(self.ended_ns[pid] - begin_ns)
        return min(found)

    def _watch(self, begin_ns: int) -> bool:
        """Wait until all have ended, one has failed, or the runner wants no more; return whether it does not."""
        is_unwanted, has_told = False, False
        while len(self._told) < len(self._pids) and not is_unwanted:
            is_unwanted = self.is_unwanted(TICK_S if has_told else _UNTOLD_S)
            if not has_told and self._is_due(begin_ns):
                has_told = True
                tell("started", pids=self._pids, begin_ns=begin_ns)
            if has_told:
                self._tell_exits()
            if any(self.statuses[self._pids[rank]] for rank in self._told):
                break
        return is_unwanted

    def _is_due(self, begin_ns: int) -> bool:
        """Is the runner to hear of this execution now: because one of its processes ended, or it takes long?"""
        has_ended = any(pid in self.statuses for pid in self._pids)
        return has_ended or time.perf_counter_ns() - begin_ns >= _UNTOLD_S * 1e9

    def _tell_exits(self) -> None:
        ended = [rank for rank, pid in enumerate(self._pids) if pid in self.statuses and rank not in self._told]
        for rank in sorted(ended, key=lambda rank: self.ended_ns[self._pids[rank]]):
            self._told.add(rank)
            pid = self._pids[rank]
            tell("exit", rank=rank, status=self.statuses[pid], end_ns=self.ended_ns[pid])

    def _end(self, begin_ns: int, empty_ns: int | None) -> None:
        # While a leader lives, everything below it is its own business: only what outlived all of them was left behind.
        strays = 0 if len(self._told) < len(self._pids) else len(self.members())
        left = self.end_all(self._pids, stop_signal=signal.SIGTERM, grace_s=_GRACE_S)
        self._tell_exits()
        ends = [self.ended_ns[pid] for pid in self._pids if pid in self.ended_ns]
        tell(
            "ended",
            begin_ns=begin_ns,
            end_ns=max(ends, default=time.perf_counter_ns()),
            cpu_ns=int(self.cpu_s * 1e9),
            rss_peak_kib=self.rss_peak_kib,
            strays=strays,
            left=sorted(left),
            empty_ns=empty_ns,
        )


def _open_log(path: str, block: ExitStack) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    block.callback(os.close, descriptor)
    return descriptor


def _find_program(name: str, environment: dict[str, str]) -> bytes:
    """Return the path of a program, as the script's own PATH has it."""
    found = None if "/" in name else shutil.which(name, path=environment.get("PATH", os.defpath))
    return os.fsencode(found or name)


def _empty_program(null: int) -> PreparedProcess | None:
    """Return the program `true`, which does nothing."""
    path = shutil.which("true")
    return None if path is None else PreparedProcess(os.fsencode(path), [b"true"], {}, "/", (null, null, null))


def guard(supervisor: int, token: str) -> int:
    """Wait for the supervisor, and end what it executed if it was killed; return the exit code of this process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for pipe in (0, 1):  # only the supervisor speaks with the runner
        os.close(pipe)
    _, status = os.waitpid(supervisor, 0)
    if os.WIFSIGNALED(status):
        process_tree.kill_all(lambda: process_tree.carrying(token), within_s=_KILL_S)
    return 0 if status == 0 else 1


def main() -> int:
    runner, token = int(sys.argv[1]), sys.argv[2]
    order = {"token": token, "parent": os.getppid()}
    os.chdir("/")
    gc.disable()  # what it makes, it drops again
    runner_fd = _open_process(runner)
    if runner_fd is not None:  # then another process can be the parent of this one: the guard
        order["parent"] = os.getpid()
        if supervisor := os.fork():
            return guard(supervisor, token)
    ScriptSupervisor(order, runner_fd).serve()
    return 0


def _open_process(pid: int) -> int | None:
    """Return a descriptor that tells when a process has ended, where the system has such a thing."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an older kernel
        return None


if __name__ == "__main__":
    sys.exit(main())
