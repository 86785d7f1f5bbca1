"""Explain how the processes of a script ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path

from prony.kinds.script.runner.plan import Plan, Stream
from prony.model.result import Failure, RankEnd
from prony.runner.supervisor import exit_text

_PHASE = "measure"
_TAIL = 3000
_LONGEST = 200
_HINTS = {
    signal.SIGKILL: "look for who did it: an operator, a supervisor, or the system for want of memory",
    signal.SIGTERM: "look for who asked it to end",
    signal.SIGILL: "was it built for another CPU?",
}


def not_started(plan: Plan, rank: int, reason: str) -> Failure:
    program = plan.processes[rank]["argv"][0]
    hint = "is it installed and on the path? a file beside the recipe needs workload.directory"
    return Failure(
        code="no_script_program",
        message=f"{program} cannot be started: {reason}",
        hint=hint,
        phase="start",
        whose="capacity",
    )


def timed_out(limit_s: float) -> Failure:
    message = f"the script did not end within {limit_s:g} s"
    return Failure(code="timeout", message=message, hint="raise limits.timeout, or let it do less", phase=_PHASE)


def over_memory(used_mib: float, limit_mib: float) -> Failure:
    message = f"the script's processes used {used_mib:.0f} MiB, over the limit of {limit_mib:.0f} MiB"
    return Failure(code="memory_limit", message=message, hint="raise limits.memory", phase=_PHASE)


def over_log(limit_mib: float) -> Failure:
    message = f"the script wrote more than {limit_mib:.0f} MiB of output"
    return Failure(code="log_limit", message=message, hint="let it print less, or into a file of its own", phase=_PHASE)


def script_cancelled() -> Failure:
    return Failure(code="cancelled", message="stopped while the script ran", phase=_PHASE, whose="prony")


def lost() -> Failure:
    message = "the process that watches over the script was killed, and the script with it"
    return Failure(code="warden_lost", message=message, phase=_PHASE, whose="prony")


def ends_of(plan: Plan, told: Sequence[RankEnd]) -> tuple[list[RankEnd], str]:
    """Return how each process ended, in that order, and why one could not begin; the ranks of a launcher wrote it
    down themselves."""
    if plan.endings is None:
        return [*told], ""
    return _read(plan.endings)


def find_failure(
    plan: Plan, ends: Sequence[RankEnd], reason: str, *, out_of_memory: bool, of_launcher: bool = False
) -> Failure | None:
    """Return why an execution failed: the first process that did is the reason for all others."""
    first = next((end for end in ends if end.status != 0), None)
    if first is None:
        return None
    is_ranked = not of_launcher and any(stream.rank is not None for stream in plan.streams)
    count = plan.world if is_ranked else 0
    what = f"rank {first.rank} of {count}" if count else f"the {'launcher' if of_launcher else 'script'}"
    detail = last_words(plan.streams, first.rank if count else None)
    more = ("; the others were ended with it" if count > 1 else "") + _last_line(detail)
    name = signal.Signals(-first.status).name if -first.status in {*signal.Signals} else None
    if name is None:
        message = f"{what} {reason or f'ended with {exit_text(first.status)}'}{more}"
        hint = "its last words are with the failure, and all of them in the result's logs"
        return Failure(code="script_exit", message=message, hint=hint, phase=_PHASE, detail=detail)
    if out_of_memory and name == "SIGKILL":
        message = f"{what} was killed because the system ran out of memory{more}"
        hint = "let it use less, or use a machine with more memory"
        return Failure(code="out_of_memory", message=message, hint=hint, phase=_PHASE, signal=name, detail=detail)
    hint = _HINTS.get(signal.Signals(-first.status), "its last words are with the failure")
    message = f"{what} ended with {exit_text(first.status)}{more}"
    return Failure(code="script_signal", message=message, hint=hint, phase=_PHASE, signal=name, detail=detail)


def _last_line(detail: str) -> str:
    """Return the last line that was said: mostly it is the reason."""
    lines = detail.splitlines()
    return f"; it said last: {lines[-1].strip()[:_LONGEST]}" if lines else ""


def last_words(streams: Sequence[Stream], rank: int | None) -> str:
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
