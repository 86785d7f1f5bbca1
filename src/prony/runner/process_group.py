"""Start a process with all that it will start as one group, ask the group to stop, and kill it.

A session of its own does this on Linux and macOS. On Windows it is a job object, which ends what is in it when its
last handle is closed, so also when this process is killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import Any

_KILL_ON_JOB_CLOSE, _LIMITS = 0x2000, 9
_SET_QUOTA_AND_TERMINATE = 0x0100 | 0x0001
# Of subprocess and signal on Windows.
NEW_PROCESS_GROUP, CTRL_BREAK = 0x00000200, 1


def group_options(platform: str = sys.platform) -> dict[str, Any]:
    """Return what `Popen` is told, so that the process begins a group."""
    return {"creationflags": NEW_PROCESS_GROUP} if platform == "win32" else {"start_new_session": True}


def hold_group(pid: int) -> JobObject | None:
    """Take hold of a process that was just started; None where its session is enough. Keep what is returned."""
    return JobObject(pid) if sys.platform == "win32" else None


def ask_group_to_stop(pid: int, number: int = signal.SIGTERM, platform: str = sys.platform) -> None:
    """Ask the leader of a group to stop and to keep what it has."""
    with suppress(ProcessLookupError):
        os.kill(pid, CTRL_BREAK if platform == "win32" else number)


def kill_group(pid: int, job: JobObject | None = None) -> None:
    """Kill a group with everything in it; one that is gone needs no more."""
    if job is not None:
        job.kill()
    elif sys.platform == "win32":
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    else:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def stop_signals(platform: str = sys.platform) -> tuple[int, ...]:
    """Return the signals by which a process is asked to stop, as its group may be."""
    both = (int(signal.SIGINT), int(signal.SIGTERM))
    return (*both, int(getattr(signal, "SIGBREAK", 21))) if platform == "win32" else both


class _IoCounters(ctypes.Structure):
    _fields_ = [(f"field_{number}", ctypes.c_ulonglong) for number in range(6)]


class _BasicLimits(ctypes.Structure):
    _fields_ = [
        ("per_process_time", ctypes.c_longlong),
        ("per_job_time", ctypes.c_longlong),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("most_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority_class", ctypes.c_uint32),
        ("scheduling_class", ctypes.c_uint32),
    ]


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION, with the names of this house."""

    _fields_ = [
        ("basic", _BasicLimits),
        ("io", _IoCounters),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    ]


class JobObject:
    """A job object of Windows with one process in it; what that starts is in it too."""

    def __init__(self, pid: int, kernel32: Any = None) -> None:
        self._kernel = kernel32 or ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
        self._job = self._kernel.CreateJobObjectW(None, None)
        limits = ExtendedLimits()
        limits.basic.flags = _KILL_ON_JOB_CLOSE
        size = ctypes.sizeof(limits)
        process = self._kernel.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, pid)
        try:
            is_held = (
                self._job
                and process
                and self._kernel.SetInformationJobObject(self._job, _LIMITS, ctypes.byref(limits), size)
                and self._kernel.AssignProcessToJobObject(self._job, process)
            )
            if not is_held:
                raise OSError(f"Windows does not put process {pid} into a job object")
        finally:
            if process:
                self._kernel.CloseHandle(process)

    def kill(self) -> None:
        """End everything in it."""
        if self._job:
            self._kernel.TerminateJobObject(self._job, 1)

    def close(self) -> None:
        """Let go of it, which ends what is left in it."""
        if self._job:
            self._kernel.CloseHandle(self._job)
            self._job = None
