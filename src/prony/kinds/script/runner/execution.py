"""Run one execution of a script: start it, follow it, enforce its limits and end it."""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from prony.instruments.counters import oom_kills
from prony.kinds.script.runner import exit_reasons
from prony.kinds.script.runner.plan import Plan
from prony.kinds.script.runner.reading import Tail
from prony.model.recipe import Limits
from prony.model.result import Failure, RankEnd
from prony.runner.services import process_tree
from prony.runner.services.usage import Usage

_WARDEN = ("-P", "-m", "prony.kinds.script.runner.script_supervisor")
_POLL_S = 0.1
_END_S = 120.0  # longer than the supervisor needs at its worst
_LOG_MOST = 256 * 2**20


@dataclass(frozen=True)
class Watch:
    """Limits of an execution, and who wants to hear of it while it runs."""

    limits: Limits
    stop_asked: Callable[[], bool]
    on_tick: Callable[[int], None]
    trouble: Callable[[], Failure | None] = lambda: None  # what else ends it: a server that is there no more


@dataclass
class ExecutionOutcome:
    """What is known when everything has ended; `failure` is None where all went well."""

    begin_ns: int = 0
    end_ns: int = 0
    cpu_ns: int = 0
    rss_peak_kib: int | None = None
    strays: int = 0
    ends: list[RankEnd] = field(default_factory=list)
    failure: Failure | None = None


class Execution:
    """One execution. Its processes are children of a supervisor, which ends them with this process however it ends."""

    def __init__(self, plan: Plan, tails: Sequence[Tail], watch: Watch) -> None:
        self._plan, self._tails, self._watch = plan, tails, watch
        self._token = secrets.token_hex(16)
        self._events: dict[str, dict[str, Any]] = {}
        self._exits: list[RankEnd] = []
        self._heard = b""
        self._limit: Failure | None = None
        self._limit_ns = 0

    def run(self) -> ExecutionOutcome:
        """Execute it to its end."""
        starved_before = oom_kills()
        supervisor = subprocess.Popen(
            [sys.executable, *_WARDEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        try:
            self._order(supervisor)
            self._attend(supervisor)
        finally:
            self._close(supervisor)
        for tail in self._tails:
            tail.follow(is_last=True)
        starved_after = oom_kills()
        starved = starved_before is not None and starved_after is not None and starved_after > starved_before
        return self._outcome(out_of_memory=starved)

    def _order(self, supervisor: subprocess.Popen[bytes]) -> None:
        order = {"processes": self._plan.processes, "token": self._token, "parent": os.getpid()}
        assert supervisor.stdin is not None
        with suppress(BrokenPipeError):  # then it was killed already, and that is seen below
            supervisor.stdin.write(json.dumps(order).encode() + b"\n")
            supervisor.stdin.flush()

    def _attend(self, supervisor: subprocess.Popen[bytes]) -> None:
        """Follow what it writes and hold it to its limits, until the supervisor has told the end."""
        begin_ns, usage = time.perf_counter_ns(), Usage(supervisor.pid)
        while self._listen(supervisor):
            for tail in self._tails:
                if tail.is_live:
                    tail.follow()
            pids = self._events.get("started", {}).get("pids") or [0]
            self._watch.on_tick(pids[0])
            if self._limit is None:
                self._limit_ns = time.perf_counter_ns()
                self._limit = self._check_limits(self._limit_ns - begin_ns, usage)
                if self._limit is not None and supervisor.stdin is not None:
                    supervisor.stdin.close()  # the supervisor ends everything and tells the end

    def _listen(self, supervisor: subprocess.Popen[bytes]) -> bool:
        """Take what the supervisor tells, or let a moment pass; False when there is nothing more to hear."""
        assert supervisor.stdout is not None
        pipe = supervisor.stdout.fileno()
        ready, _, _ = select.select([pipe], [], [], _POLL_S)
        if not ready:
            return True
        piece = os.read(pipe, 2**16)
        *lines, self._heard = (self._heard + piece).split(b"\n")
        for message in map(json.loads, lines):
            if message["event"] == "exit":
                rank = self._plan.first + message["rank"]
                self._exits.append(RankEnd(rank=rank, status=message["status"], end_ns=message["end_ns"]))
            self._events[message["event"]] = message
        return bool(piece)

    def _check_limits(self, so_far_ns: int, usage: Usage) -> Failure | None:
        limits = self._watch.limits
        if self._watch.stop_asked():
            return exit_reasons.script_cancelled()
        if so_far_ns > limits.timeout:
            return exit_reasons.timed_out(limits.timeout / 1e9)
        if sum(tail.size for tail in self._tails) > _LOG_MOST:
            return exit_reasons.over_log(_LOG_MOST / 2**20)
        used_mib = usage.rss_mib() if limits.memory is not None else None
        if limits.memory is not None and used_mib is not None and used_mib * 2**20 > limits.memory:
            return exit_reasons.over_memory(used_mib, limits.memory / 2**20)
        return self._watch.trouble()

    def _outcome(self, *, out_of_memory: bool) -> ExecutionOutcome:
        ended, failed = self._events.get("ended"), self._events.get("failed")
        if ended is None:
            return ExecutionOutcome(failure=self._limit or exit_reasons.lost())
        known = {key: ended[key] for key in ("begin_ns", "end_ns", "cpu_ns", "rss_peak_kib", "strays")}
        ends, reason = exit_reasons.ends_of(self._plan, self._exits)
        found = ExecutionOutcome(ends=ends, **known)
        if failed is not None:
            found.failure = exit_reasons.not_started(self._plan, failed["rank"], failed["reason"])
        else:
            found.failure = self._limit or exit_reasons.find_failure(
                self._plan, ends, reason, out_of_memory=out_of_memory
            )
            # One that died before somebody wanted it to end is why: others of its kind have failed because of it.
            died = [end for end in ends if end.status != 0 and (end.end_ns or self._limit_ns) < self._limit_ns]
            if self._limit is not None and died:
                found.failure = exit_reasons.find_failure(self._plan, died, reason, out_of_memory=out_of_memory)
            if found.failure is None and self._plan.endings is not None:  # not one rank failed, or none began
                found.failure = exit_reasons.find_failure(
                    self._plan, self._exits, "", out_of_memory=out_of_memory, of_launcher=True
                )
        return found

    def _close(self, supervisor: subprocess.Popen[bytes]) -> None:
        for pipe in (supervisor.stdin, supervisor.stdout):
            if pipe is not None:
                pipe.close()
        try:
            supervisor.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
        if supervisor.returncode != 0:  # it was killed before it could end the script
            sessions = self._events.get("started", {}).get("pids", [])
            process_tree.kill_all(lambda: self._orphans(sessions), within_s=_END_S)

    def _orphans(self, sessions: Sequence[int]) -> set[int]:
        return process_tree.carrying(self._token).union(*(process_tree.in_session(leader) for leader in sessions))
