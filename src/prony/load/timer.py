"""Timer: wake an event loop at an absolute instant.

On Linux an alarm is a timerfd, exact to microseconds where the time-out of epoll only knows milliseconds. Elsewhere
there is no descriptor, and whoever waits gives the time that is left as its time-out. An alarm only makes a process fit
to run; that it runs at once, though others do, is what `come_first` asks for.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC if sys.platform.startswith("linux") else 0


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanos", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def _kernel() -> Any:
    """Return the C library where it has timerfd, else None."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timerfd_create") else None


def come_first(processes: int) -> bool:
    """Ask to run as soon as there is something to do, before all ordinary processes; return whether it was granted.

    It is for root and whoever may use real-time priorities. Not asked for where `processes` that do so leave no core
    to others: the server must run too.
    """
    if not hasattr(os, "sched_setscheduler") or processes >= len(os.sched_getaffinity(0)):
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except OSError:
        return False
    return True


class Timer:
    """One descriptor that becomes readable at an instant of the axis of `perf_counter_ns`; `fd` is -1 without one."""

    def __init__(self) -> None:
        library = _kernel()
        self.fd = library.timerfd_create(time.CLOCK_MONOTONIC, _FLAGS) if library is not None else -1
        if self.fd < 0:
            return
        self._spec = _Itimerspec()
        self._value = self._spec.value
        self._settime = library.timerfd_settime
        self._settime.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self._at = ctypes.addressof(self._spec)

    def set(self, at_ns: int) -> None:
        """Ring at this instant and not at any that was set before; setting it also silences one that rang."""
        # Zero would disarm it, and an instant that has passed rings at once, as it should.
        self._value.seconds, self._value.nanos = divmod(max(at_ns, 1), 10**9)
        self._settime(self.fd, _ABSOLUTE, self._at, None)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
