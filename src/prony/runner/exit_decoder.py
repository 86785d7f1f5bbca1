"""Explain how a process ended as a failure with a readable reason."""

from __future__ import annotations

import os
import signal

from prony.error_codes import SEE_LOG
from prony.model.result import Failure

_MEANINGS: dict[str, tuple[str, str, str]] = {
    "SIGILL": (
        "illegal_instruction",
        "the engine used an instruction that this CPU does not have",
        "install a build of the engine for this CPU, or one without native flags",
    ),
    "SIGSEGV": ("crash", "the engine crashed (segmentation fault)", f"{SEE_LOG}; try another version of the engine"),
    "SIGBUS": (
        "crash",
        "the engine crashed (bus error)",
        "check whether the disk is full or the model file is cut short",
    ),
    "SIGABRT": ("crash", "the engine aborted itself", f"{SEE_LOG}; its end says why"),
    "SIGFPE": ("crash", "the engine crashed (arithmetic error)", f"{SEE_LOG}; try another version of the engine"),
    "SIGXCPU": ("cpu_limit", "the system's CPU time limit was reached", "raise the limit (ulimit -t)"),
    "SIGKILL": (
        "killed",
        "the process was killed from outside",
        "find out what killed it: an operator or a supervisor",
    ),
    "SIGTERM": ("killed", "the process was stopped from outside", "find out what sent it this signal"),
}


def decode_exit(status: int, phase: str, *, out_of_memory: bool = False, detail: str = "") -> Failure:
    """Say why a child ended without an answer, from its wait status."""
    if os.WIFSIGNALED(status):
        return _from_signal(os.WTERMSIG(status), phase, out_of_memory=out_of_memory, detail=detail)
    code = os.waitstatus_to_exitcode(status)
    message = f"the engine ended its own process with exit code {code} during {phase}"
    return Failure(code="engine_exit", message=message, hint=SEE_LOG, phase=phase, detail=detail)


def _from_signal(number: int, phase: str, *, out_of_memory: bool, detail: str) -> Failure:
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if name == "SIGKILL" and out_of_memory:
        message = f"the system ran out of memory and killed the engine during {phase}"
        hint = "use a smaller batch or model, or a machine with more memory"
        return Failure(code="out_of_memory", message=message, hint=hint, phase=phase, signal=name, detail=detail)
    code, meaning, hint = _MEANINGS.get(name, ("crash", f"the engine was ended by {name}", SEE_LOG))
    message = f"{meaning} ({name} during {phase})"
    return Failure(code=code, message=message, hint=hint, phase=phase, signal=name, detail=detail)


def timed_out(phase: str, limit_s: float) -> Failure:
    message = f"the engine timed out after {limit_s:g} s during {phase}"
    hint = "raise limits.timeout, or measure less"
    return Failure(code="timeout", message=message, hint=hint, phase=phase)


def over_memory(phase: str, used_mib: float, limit_mib: float) -> Failure:
    message = f"used {used_mib:.0f} MiB, over the limit of {limit_mib:.0f} MiB, during {phase}"
    hint = "raise limits.memory, or use a smaller batch or model"
    return Failure(code="memory_limit", message=message, hint=hint, phase=phase)


def over_log(phase: str, limit_mib: float) -> Failure:
    message = f"the engine printed more than {limit_mib:.0f} MiB during {phase}"
    hint = "lower the engine's own log level (workload.options, or its environment variables)"
    return Failure(code="log_limit", message=message, hint=hint, phase=phase)


def cancelled_failure(phase: str) -> Failure:
    return Failure(code="cancelled", message=f"stopped during {phase}", phase=phase)


def garbled_failure(phase: str, detail: str) -> Failure:
    message = f"the engine's process sent an unreadable message during {phase}"
    hint = "the engine may write to file descriptors that belong to Prony"
    return Failure(code="unreadable_message", message=message, hint=hint, phase=phase, detail=detail)
