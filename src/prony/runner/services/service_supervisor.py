"""Start a service, tell its life on standard output, and end all of it when standard input closes.

`python -P -m prony.runner.services.service_supervisor` is the parent of a service and the heir of whatever leaves the
service's own process. It reads an order on standard input, runs in a session of its own, keeps the system's rights
where the service has none, and needs nothing but the standard library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from prony.runner.services import process_tree
from prony.runner.supervisor import TICK_S, Supervisor, exit_text, order_heard, tell

LOG_MOST = 64 * 2**20
LOG_HEAD = 256 * 2**10
_CLEAR_S = 60.0


class ServiceSupervisor(Supervisor):
    """One service. `order`: command, before, environment, folder, log, uid, gid, stop_signal, grace_s, clear, token,
    parent."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self._log: BinaryIO = Path(order["log"]).open("ab")  # noqa: SIM115 - closed when this process ends
        self._pid = 0
        self._has_told = False

    def serve(self) -> None:
        self.get_ready()
        try:
            if all(self._has_run(command) for command in self.order["before"]):
                self._watch()
        finally:
            self._end()

    def _has_run(self, command: Sequence[str]) -> bool:
        """Run a command to its end; False where it failed or the runner wants no more."""
        pid = self._spawn(command)
        while pid and pid not in self.statuses:
            if self.is_unwanted(TICK_S):
                return False
        if pid and self.statuses[pid] != 0:
            tell("failed", reason=f"{' '.join(command)} ended with {exit_text(self.statuses[pid])}")
        return bool(pid) and self.statuses[pid] == 0

    def _watch(self) -> None:
        begin_ns = time.perf_counter_ns()
        self._pid = self._spawn(self.order["command"])
        if self._pid:
            tell("started", pid=self._pid, begin_ns=begin_ns)
        while not self.is_unwanted(TICK_S):
            self.trim_log()
            if self._pid in self.statuses and not self._has_told and not self.members():
                self._has_told = True
                tell("gone", status=exit_text(self.statuses[self._pid]))

    def _spawn(self, command: Sequence[str]) -> int:
        """Start a program in the service's folder, as the service's user; 0 where it cannot be."""
        who: dict[str, Any] = {}
        if self.order["uid"] is not None:
            who = {"user": self.order["uid"], "group": self.order["gid"], "extra_groups": []}
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                cwd=self.order["folder"],
                env=self.order["environment"] | {process_tree.TOKEN: self.order["token"]},
                start_new_session=True,
                preexec_fn=process_tree.die_with_parent,  # noqa: PLW1509 - one system call, in a process without threads
                **who,
            )
        except (OSError, subprocess.SubprocessError) as exc:
            tell("failed", reason=f"{command[0]} cannot be started: {exc}")
            return 0
        child.returncode = 0  # it is waited for here, with all the others
        return child.pid

    def trim_log(self) -> None:
        """Keep the beginning of a log that grew too long; the service goes on to write at its end."""
        size = os.fstat(self._log.fileno()).st_size
        if size <= LOG_MOST:
            return
        with Path(self.order["log"]).open("r+b") as file:
            file.seek(LOG_HEAD)
            file.truncate()
        self._log.write(f"\n[{size - LOG_HEAD} bytes were cut here]\n".encode())
        self._log.flush()

    def _end(self) -> None:
        """End the service politely, then everything that is left of it, and remove its folder."""
        for command in self.order["clear"]:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(command, stdout=self._log, stderr=self._log, check=False, timeout=_CLEAR_S)
        leaders = [self._pid] if self._pid else []
        left = self.end_all(leaders, stop_signal=self.order["stop_signal"], grace_s=self.order["grace_s"])
        shutil.rmtree(self.order["folder"], ignore_errors=True)
        tell("ended", left=sorted(left))


def main() -> int:
    order = order_heard()
    if order is None:
        return 1
    ServiceSupervisor(order).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
