"""An order in on standard input, a service's life out on standard output; it ends all of it when the pipe closes.

`python -P -m prony.run.services.watchdog` is the parent of a service and the heir of whatever leaves the service's own
process. The pipe closes when the runner wants the service to end, and when the runner itself was killed. It runs in a
session of its own, keeps the system's rights where the service has none, and needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from prony.run.services import reaper

LOG_MOST = 64 * 2**20
LOG_HEAD = 256 * 2**10
_TICK_S = 1.0
_REST_S = 1.0  # for what a service left behind, to end by itself
_KILL_S = 30.0  # a process with much memory, or that waits for a disk, takes a while to go
_CLEAR_S = 60.0
_DESCRIPTORS = 2**16


class Watchdog:
    """One service. `order`: command, before, environment, folder, log, uid, gid, stop_signal, grace_s, clear, token,
    parent."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._log: BinaryIO = Path(order["log"]).open("ab")  # noqa: SIM115 - closed when this process ends
        self._statuses: dict[int, int] = {}
        self._pid = 0
        self._has_told = False
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)

    def serve(self) -> None:
        reaper.adopt_orphans()
        _allow_descriptors()
        signal.set_wakeup_fd(self._woken)
        # Whoever wants this process to end closes the pipe; then the service is ended first.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        try:
            if all(self._has_run(command) for command in self._order["before"]):
                self._watch()
        finally:
            self._end()

    def _has_run(self, command: Sequence[str]) -> bool:
        """Run a command to its end; False where it failed or the runner wants no more."""
        pid = self._spawned(command)
        while pid and pid not in self._statuses:
            if self._is_unwanted(_TICK_S):
                return False
        if pid and self._statuses[pid] != 0:
            tell("failed", reason=f"{' '.join(command)} ended with {exit_text(self._statuses[pid])}")
        return bool(pid) and self._statuses[pid] == 0

    def _watch(self) -> None:
        begin_ns = time.perf_counter_ns()
        self._pid = self._spawned(self._order["command"])
        if self._pid:
            tell("started", pid=self._pid, begin_ns=begin_ns)
        while not self._is_unwanted(_TICK_S):
            self.trim_log()
            if self._pid in self._statuses and not self._has_told and not self._members():
                self._has_told = True
                tell("gone", status=exit_text(self._statuses[self._pid]))

    def _spawned(self, command: Sequence[str]) -> int:
        """Start a program in the service's folder, as the service's user; 0 where it cannot be."""
        who: dict[str, Any] = {}
        if self._order["uid"] is not None:
            who = {"user": self._order["uid"], "group": self._order["gid"], "extra_groups": []}
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                cwd=self._order["folder"],
                env=self._order["environment"] | {reaper.TOKEN: self._order["token"]},
                start_new_session=True,
                preexec_fn=reaper.die_with_parent,  # noqa: PLW1509 - one system call, in a process without threads
                **who,
            )
        except (OSError, subprocess.SubprocessError) as exc:
            tell("failed", reason=f"{command[0]} cannot be started: {exc}")
            return 0
        child.returncode = 0  # it is waited for here, with all the others
        return child.pid

    def _members(self) -> set[int]:
        return reaper.descendants(os.getpid())

    def _is_unwanted(self, within_s: float) -> bool:
        """Wait for a child's end, a signal or the tick; return whether the runner has no more use for the service."""
        ready, _, _ = select.select([0, self._wake], [], [], within_s)
        if self._wake in ready:
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)
        self._reap()
        # A fork of the runner may keep the pipe open when the runner is gone.
        return os.getppid() != self._order["parent"] or (0 in ready and not os.read(0, 4096))

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                self._statuses[pid] = os.waitstatus_to_exitcode(status)

    def trim_log(self) -> None:
        """Keep the beginning of a log that grew too long; the service goes on to write at its end."""
        size = os.fstat(self._log.fileno()).st_size
        if size <= LOG_MOST:
            return
        with Path(self._order["log"]).open("r+b") as file:
            file.seek(LOG_HEAD)
            file.truncate()
        self._log.write(f"\n[{size - LOG_HEAD} bytes were cut here]\n".encode())
        self._log.flush()

    def _end(self) -> None:
        """End the service politely, then everything that is left of it, and remove its folder."""
        for command in self._order["clear"]:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(command, stdout=self._log, stderr=self._log, check=False, timeout=_CLEAR_S)
        if self._pid and self._pid not in self._statuses:
            reaper.signalled([self._pid], self._order["stop_signal"])
            reaper.gone(lambda: self._members() & {self._pid}, within_s=self._order["grace_s"], reap=self._reap)
        reaper.signalled(self._members(), signal.SIGTERM)
        reaper.gone(self._members, within_s=min(_REST_S, self._order["grace_s"]), reap=self._reap)
        if self._pid and sys.platform != "linux":  # where nobody adopts orphans, their group still finds most of them
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        left = reaper.ended(self._all, within_s=_KILL_S, reap=self._reap)
        shutil.rmtree(self._order["folder"], ignore_errors=True)
        tell("ended", left=sorted(left))

    def _all(self) -> set[int]:
        return self._members() | reaper.carrying(self._order["token"])


def _allow_descriptors() -> None:
    """Let the service open as many files as the system allows: a loaded server needs one for each connection."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def exit_text(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"


def tell(event: str, **more: Any) -> None:
    """Say something to the runner; if it is gone nobody needs to hear it."""
    with suppress(OSError):
        os.write(1, json.dumps({"event": event, **more}).encode() + b"\n")


def main() -> int:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 2**16)
        if not piece:
            return 1
        line += piece
    Watchdog(json.loads(line)).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
