"""Run one execution of a script: start it, follow it, enforce its limits, end it and explain how it ended."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.error_codes import SEE_LOG
from prony.instruments.counters import oom_kills
from prony.kinds.script.runner.plan import ScriptPlan, Stream
from prony.kinds.script.runner.reading import Tail
from prony.kinds.script.runner.supervisor_process import SupervisorProcess
from prony.model.recipe import Limits
from prony.model.result import Failure, RankEnd
from prony.runner.child.parent_end import KILL
from prony.runner.services.usage import Usage
from prony.runner.supervisor import exit_text

_PHASE = "measure"
_TAIL = 3000
_LONGEST = 200
_HINTS = {
    KILL: "find out what killed it: an operator, a supervisor, or the system when it ran out of memory",
    signal.SIGTERM: "find out what sent it this signal",
    signal.SIGILL: "check whether it was built for another CPU",
}


def _not_started(plan: ScriptPlan, rank: int, reason: str) -> Failure:
    program = plan.processes[rank]["argv"][0]
    hint = "check that it is installed and on PATH; a file next to the recipe needs workload.directory"
    return Failure(
        code="no_script_program",
        message=f"{program} cannot be started: {reason}",
        hint=hint,
        phase="start",
        whose="capacity",
    )


def _timed_out(limit_s: float) -> Failure:
    message = f"the script timed out after {limit_s:g} s"
    return Failure(code="timeout", message=message, hint="raise limits.timeout, or give it less work", phase=_PHASE)


def _over_memory(used_mib: float, limit_mib: float) -> Failure:
    message = f"the script's processes used {used_mib:.0f} MiB, over the limit of {limit_mib:.0f} MiB"
    return Failure(code="memory_limit", message=message, hint="raise limits.memory", phase=_PHASE)


def _over_log(limit_mib: float) -> Failure:
    message = f"the script wrote more than {limit_mib:.0f} MiB of output"
    return Failure(code="log_limit", message=message, hint="print less, or print to a file", phase=_PHASE)


def script_cancelled() -> Failure:
    return Failure(code="cancelled", message="stopped while the script ran", phase=_PHASE, whose="prony")


def lost() -> Failure:
    message = "the process that supervises the script was killed, and the script with it"
    return Failure(code="supervisor_lost", message=message, hint=_HINTS[KILL], phase=_PHASE, whose="prony")


def _ends_of(plan: ScriptPlan, told: Sequence[RankEnd]) -> tuple[list[RankEnd], str]:
    """Return how each process ended, in that order, and why one could not begin; the ranks of a launcher wrote it
    down themselves."""
    if plan.endings is None:
        return [*told], ""
    return _read(plan.endings)


def _find_failure(
    plan: ScriptPlan, ends: Sequence[RankEnd], reason: str, *, out_of_memory: bool, of_launcher: bool = False
) -> Failure | None:
    """Return why an execution failed: the first process that did is the reason for all others."""
    first = next((end for end in ends if end.status != 0), None)
    if first is None:
        return None
    is_ranked = not of_launcher and any(stream.rank is not None for stream in plan.streams)
    count = plan.world if is_ranked else 0
    what = f"rank {first.rank} of {count}" if count else f"the {'launcher' if of_launcher else 'script'}"
    detail = _last_words(plan.streams, first.rank if count else None)
    more = ("; the others were ended with it" if count > 1 else "") + _last_line(detail)
    name = signal.Signals(-first.status).name if -first.status in {*signal.Signals} else None
    if name is None:
        message = f"{what} {reason or f'ended with {exit_text(first.status)}'}{more}"
        hint = SEE_LOG
        return Failure(code="script_exit", message=message, hint=hint, phase=_PHASE, detail=detail)
    if out_of_memory and name == "SIGKILL":
        message = f"{what} was killed because the system ran out of memory{more}"
        hint = "use less memory, or a machine with more"
        return Failure(code="out_of_memory", message=message, hint=hint, phase=_PHASE, signal=name, detail=detail)
    hint = _HINTS.get(signal.Signals(-first.status), SEE_LOG)
    message = f"{what} ended with {exit_text(first.status)}{more}"
    return Failure(code="script_signal", message=message, hint=hint, phase=_PHASE, signal=name, detail=detail)


def _last_line(detail: str) -> str:
    """Return the last line that was said: mostly it is the reason."""
    lines = detail.splitlines()
    return f"; its last output: {lines[-1].strip()[:_LONGEST]}" if lines else ""


def _last_words(streams: Sequence[Stream], rank: int | None) -> str:
    """Return the end of what a process wrote, its errors before its output."""
    own = sorted((one for one in streams if one.rank == rank), key=lambda one: one.name == "stdout")
    own += [one for one in streams if rank is not None and one.rank is None and one.name == "stderr"]
    return next((text for one in own if (text := _tail(one.path))), "")


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        return file.read().decode(errors="replace").strip()


def _read(path: Path) -> tuple[list[RankEnd], str]:
    records = [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []
    records.sort(key=lambda record: record["end_ns"])
    reason = next((str(record["reason"]) for record in records if record["reason"]), "")
    return [RankEnd.read({key: record[key] for key in ("rank", "status", "end_ns")}) for record in records], reason


_POLL_S = 0.1
_LOG_MOST = 256 * 2**20


@dataclass(frozen=True)
class ExecutionWatch:
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
    empty_ns: int | None = None  # what starting and ending an empty program took just before
    ends: list[RankEnd] = field(default_factory=list)
    failure: Failure | None = None


class Execution:
    """One execution. Its processes are children of a supervisor, which ends them with this process however it ends."""

    def __init__(
        self, plan: ScriptPlan, tails: Sequence[Tail], watch: ExecutionWatch, supervisor: SupervisorProcess
    ) -> None:
        self._plan, self._tails, self._watch, self._supervisor = plan, tails, watch, supervisor
        self._events: dict[str, dict[str, Any]] = {}
        self._exits: list[RankEnd] = []
        self._limit: Failure | None = None
        self._limit_ns = 0

    def run(self) -> ExecutionOutcome:
        """Execute it to its end."""
        starved_before = oom_kills()
        try:
            self._supervisor.wait_ready()
            self._supervisor.order(self._plan.processes, self._plan.clear)
            self._attend()
        finally:
            if self._limit is not None or "ended" not in self._events:
                self._supervisor.close()
        for tail in self._tails:
            tail.follow(is_last=True)
        starved_after = oom_kills()
        starved = starved_before is not None and starved_after is not None and starved_after > starved_before
        return self._outcome(out_of_memory=starved)

    def _attend(self) -> None:
        """Follow what it writes and hold it to its limits, until the supervisor has told the end."""
        begin_ns, usage = time.perf_counter_ns(), Usage(self._supervisor.pid)
        while self._listen():
            for tail in self._tails:
                if tail.is_live:
                    tail.follow()
            pids = self._events.get("started", {}).get("pids") or [0]
            self._watch.on_tick(pids[0])
            if self._limit is None:
                self._limit_ns = time.perf_counter_ns()
                self._limit = self._check_limits(self._limit_ns - begin_ns, usage)
                if self._limit is not None:
                    self._supervisor.stop()

    def _listen(self) -> bool:
        """Take what the supervisor tells, or let a moment pass; False when there is nothing more to hear."""
        messages = self._supervisor.listen(_POLL_S)
        for message in messages or ():
            if message["event"] == "exit":
                rank = self._plan.first + message["rank"]
                self._exits.append(RankEnd(rank=rank, status=message["status"], end_ns=message["end_ns"]))
            self._events[message["event"]] = message
        return messages is not None and "ended" not in self._events

    def _check_limits(self, so_far_ns: int, usage: Usage) -> Failure | None:
        limits = self._watch.limits
        if self._watch.stop_asked():
            return script_cancelled()
        if so_far_ns > limits.timeout:
            return _timed_out(limits.timeout / 1e9)
        if sum(tail.size for tail in self._tails) > _LOG_MOST:
            return _over_log(_LOG_MOST / 2**20)
        used_mib = usage.rss_mib() if limits.memory is not None else None
        if limits.memory is not None and used_mib is not None and used_mib * 2**20 > limits.memory:
            return _over_memory(used_mib, limits.memory / 2**20)
        return self._watch.trouble()

    def _outcome(self, *, out_of_memory: bool) -> ExecutionOutcome:
        ended, failed = self._events.get("ended"), self._events.get("failed")
        if ended is None:
            return ExecutionOutcome(failure=self._limit or lost())
        known = {key: ended[key] for key in ("begin_ns", "end_ns", "cpu_ns", "rss_peak_kib", "strays", "empty_ns")}
        ends, reason = _ends_of(self._plan, self._exits)
        found = ExecutionOutcome(ends=ends, **known)
        if failed is not None:
            found.failure = _not_started(self._plan, failed["rank"], failed["reason"])
        else:
            found.failure = self._limit or _find_failure(self._plan, ends, reason, out_of_memory=out_of_memory)
            # One that died before somebody wanted it to end is why: others of its kind have failed because of it.
            died = [end for end in ends if end.status != 0 and (end.end_ns or self._limit_ns) < self._limit_ns]
            if self._limit is not None and died:
                found.failure = _find_failure(self._plan, died, reason, out_of_memory=out_of_memory)
            if found.failure is None and self._plan.endings is not None:  # not one rank failed, or none began
                found.failure = _find_failure(
                    self._plan, self._exits, "", out_of_memory=out_of_memory, of_launcher=True
                )
        return found
