"""Start a script's processes, tell their lives on standard output, and end them all together.

`python -P -m prony.kinds.script.runner.script_supervisor` reads an order on standard input and starts every process of
one execution, in sessions of their own, with their output in files. The first that fails takes the others with it.
Needs nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from prony.runner.services import process_tree
from prony.runner.supervisor import TICK_S, Supervisor, order_heard, tell

_GRACE_S = 5.0  # for a process that is asked to end


class ScriptSupervisor(Supervisor):
    """One execution. `order`: processes (argv, environment, folder, out, err), token, parent."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self._pids: list[int] = []
        self._told: set[int] = set()

    def serve(self) -> None:
        self.get_ready()
        begin_ns = time.perf_counter_ns()
        try:
            if self._has_started():
                tell("started", pids=self._pids, begin_ns=begin_ns)
                self._watch()
        finally:
            self._end(begin_ns)

    def _has_started(self) -> bool:
        for rank, process in enumerate(self.order["processes"]):
            reason = self._spawn(process)
            if reason:
                tell("failed", rank=rank, reason=reason)
                return False
        return True

    def _spawn(self, process: dict[str, Any]) -> str:
        """Start one process; return why it cannot be, or nothing."""
        try:
            with Path(process["out"]).open("ab") as out, Path(process["err"]).open("ab") as err:
                child = subprocess.Popen(
                    process["argv"],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=process["folder"],
                    env=process["environment"] | {process_tree.TOKEN: self.order["token"]},
                    start_new_session=True,
                    preexec_fn=process_tree.die_with_parent,  # noqa: PLW1509 - one system call, in a process without threads
                )
        except (OSError, subprocess.SubprocessError) as exc:
            return getattr(exc, "strerror", None) or str(exc)
        child.returncode = 0  # it is waited for here, with all the others
        self._pids.append(child.pid)
        return ""

    def _watch(self) -> None:
        """Wait until all have ended, one has failed, or the runner wants no more."""
        while len(self._told) < len(self._pids):
            is_unwanted = self.is_unwanted(TICK_S)
            self._tell_exits()
            if is_unwanted or any(self.statuses[self._pids[rank]] for rank in self._told):
                return

    def _tell_exits(self) -> None:
        ended = [rank for rank, pid in enumerate(self._pids) if pid in self.statuses and rank not in self._told]
        for rank in sorted(ended, key=lambda rank: self.ended_ns[self._pids[rank]]):
            self._told.add(rank)
            pid = self._pids[rank]
            tell("exit", rank=rank, status=self.statuses[pid], end_ns=self.ended_ns[pid])

    def _end(self, begin_ns: int) -> None:
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
        )


def main() -> int:
    order = order_heard()
    if order is None:
        return 1
    os.chdir("/")
    ScriptSupervisor(order).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
