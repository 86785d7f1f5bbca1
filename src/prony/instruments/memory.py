"""Read the memory of a process from the kernel: resident, and peak since a reset. Standard library only."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Memory:
    """Resident memory in KiB. `peak` is the high-water mark since the last `reset_peak`; None where unknown."""

    peak_kib: int | None
    now_kib: int | None
    anon_kib: int | None
    file_kib: int | None


def reset_peak() -> bool:
    """Set the high-water mark back to what is resident now; False where the system cannot."""
    if not _CLEAR_REFS.exists():
        return False
    try:
        _CLEAR_REFS.write_text("5")
    except OSError:  # a hardened container may forbid it; the peak then covers the whole life of the process
        return False
    return True


def read_memory() -> Memory:
    """Read this process's memory."""
    if _STATUS.exists():
        return _parse_status(_STATUS.read_text())
    return _from_rusage()


def _parse_status(text: str) -> Memory:
    """Read the text of `/proc/<pid>/status`."""
    fields = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem"):
            fields[name] = int(rest.split()[0])
    file_kib = fields.get("RssFile")
    return Memory(
        peak_kib=fields.get("VmHWM"),
        now_kib=fields.get("VmRSS"),
        anon_kib=fields.get("RssAnon"),
        file_kib=None if file_kib is None else file_kib + fields.get("RssShmem", 0),
    )


def _from_rusage() -> Memory:
    if sys.platform == "win32":
        return Memory(None, None, None, None)
    import resource

    # macOS counts in bytes. The mark covers the whole life of the process, which is young: one repetition.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Memory(peak // 1024 if sys.platform == "darwin" else peak, None, None, None)


def resident_kib(pid: int) -> int | None:
    """Return how much another process holds right now, cheaply enough to ask twenty times a second."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    import resource

    return pages * resource.getpagesize() // 1024


def give_back_memory() -> None:
    """Let the system have what a run's records took: glibc keeps it, though as much may never be needed again."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
