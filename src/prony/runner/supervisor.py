"""A parent of other people's programs: it adopts what they leave, hears when they end, and ends all of it with itself.

The pipe on its standard input closes when the runner wants no more, and when the runner itself was killed. Standard
library only: it is the body of small processes that stand between the runner and what it started.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from prony.runner.services import process_tree

TICK_S = 1.0
_REST_S = 1.0  # for what was left behind, to end by itself
_KILL_S = 30.0  # a process with much memory, or that waits for a disk, takes a while to go
_DESCRIPTORS = 2**16


class Supervisor:
    """`order` has at least a token and the parent; `statuses` is how each child ended, once it has.

    `runner_fd` becomes readable when the runner ends (a pidfd), where the runner is not the parent."""

    def __init__(self, order: dict[str, Any], runner_fd: int | None = None) -> None:
        self.order = order
        self._adopts = False
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)
        self._runner_fd = runner_fd
        self._watched = [0, self._wake] if runner_fd is None else [0, self._wake, runner_fd]
        self.forget_children()

    def forget_children(self) -> None:
        """Begin to count anew: nobody has ended yet, and nothing was used."""
        self.statuses: dict[int, int] = {}
        self.ended_ns: dict[int, int] = {}
        self.cpu_s = 0.0
        self.rss_peak_kib = 0

    def get_ready(self) -> None:
        self._adopts = process_tree.adopt_orphans()
        _allow_descriptors()
        signal.set_wakeup_fd(self._woken)
        # Whoever wants this process to end closes the pipe; then what it keeps is ended first.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def is_unwanted(self, within_s: float) -> bool:
        """Wait for a child's end, a signal or the tick; return whether the runner has no more use for all this."""
        ready = self._wait(within_s)
        return self._is_runner_gone(ready) or (0 in ready and not os.read(0, 4096))

    def next_order(self) -> dict[str, Any] | None:
        """Wait for one line of standard input and return what it says; None where the runner wants no more."""
        line = b""
        while not line.endswith(b"\n"):
            ready = self._wait(TICK_S)
            if self._is_runner_gone(ready):
                return None
            if 0 in ready:
                piece = os.read(0, 2**16)
                if not piece:
                    return None
                line += piece
        order: dict[str, Any] = json.loads(line)
        return order

    def _wait(self, within_s: float) -> list[int]:
        """Wait for a child's end, a signal, the runner or the tick; take the children that have ended."""
        ready, _, _ = select.select(self._watched, [], [], within_s)
        if self._wake in ready:
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)
        self.reap()
        return ready

    def _is_runner_gone(self, ready: list[int]) -> bool:
        # A fork of the runner may keep the pipe open when the runner is gone.
        return os.getppid() != self.order["parent"] or self._runner_fd in ready

    def reap(self) -> bool:
        """Take the children that have ended; return whether any child is left."""
        try:
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if not pid:
                    return True
                self.ended_ns[pid] = time.perf_counter_ns()
                self.statuses[pid] = os.waitstatus_to_exitcode(status)
                self.cpu_s += used.ru_utime + used.ru_stime
                peak = used.ru_maxrss // 1024 if sys.platform == "darwin" else used.ru_maxrss
                self.rss_peak_kib = max(self.rss_peak_kib, peak)
        except ChildProcessError:
            return False

    def members(self) -> set[int]:
        """Return every live process below this one."""
        if not self.reap() and self._adopts:  # whoever lost its parent would be a child of this process
            return set()
        return process_tree.descendants(os.getpid())

    def end_all(self, leaders: list[int], *, stop_signal: int, grace_s: float) -> set[int]:
        """End the leaders politely, then everything that is left; return who could not be ended."""
        if waiting := [pid for pid in leaders if pid not in self.statuses]:
            process_tree.send_signal(waiting, stop_signal)
            process_tree.gone(lambda: self.members() & {*waiting}, within_s=grace_s, reap=self.reap)
        process_tree.send_signal(self.members(), signal.SIGTERM)
        process_tree.gone(self.members, within_s=min(_REST_S, grace_s), reap=self.reap)
        if sys.platform != "linux":  # where nobody adopts orphans, their group still finds most of them
            for pid in leaders:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        return process_tree.kill_all(self._all, within_s=_KILL_S, reap=self.reap)

    def _all(self) -> set[int]:
        members = self.members()
        is_alone = self._adopts and not members and not self.reap()
        return members if is_alone else members | process_tree.carrying(self.order["token"])


def _allow_descriptors() -> None:
    """Let what is started open as many files as the system allows: a loaded server needs one for each connection."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def exit_text(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    return f"signal {signal.Signals(-status).name}" if -status in {*signal.Signals} else f"signal {-status}"


def tell(event: str, **more: Any) -> None:
    """Say something to the runner; if it is gone nobody needs to hear it."""
    with suppress(OSError):
        os.write(1, json.dumps({"event": event, **more}).encode() + b"\n")


def order_heard() -> dict[str, Any] | None:
    """Return the order, one line of standard input; None where nobody gives one."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 2**16)
        if not piece:
            return None
        line += piece
    order: dict[str, Any] = json.loads(line)
    return order
