"""A machine on which nobody else runs, for processes whose numbers may not be void because other tests run too.

The counters that Prony reads (`prony.instruments.kernel.ROOT`) are those of a folder in which the CPUs stand still.
Commands that are forked find it quiet in any case, unless their test is marked `busy_machine`: on a machine that is
busy with tests, nearly every run would be made twice.
"""

from __future__ import annotations

import mmap
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

QUIET_ROOT = "PRONY_TEST_QUIET_ROOT"

_CUSTOMISE = """
from pathlib import Path
import prony.instruments.kernel
prony.instruments.kernel.ROOT = Path({root!r})
"""


def quiet_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that finds this machine quiet, and so do all that it starts."""
    root, path = make_quiet_root(folder), folder / "quiet-path"
    path.mkdir(exist_ok=True)
    (path / "sitecustomize.py").write_text(_CUSTOMISE.format(root=str(root)))
    given = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(path), *([given] if given else [])])}


def make_quiet_root(folder: Path) -> Path:
    """Return a folder of counters that stand still."""
    root = folder / "quiet"
    (root / "proc").mkdir(parents=True, exist_ok=True)
    shutil.copyfile("/proc/stat", root / "proc" / "stat")
    return root


def quieten_process() -> None:
    """Have this process find the machine quiet if its environment says so and it asks at all."""
    _quieten_counters()
    canary = sys.modules.get("prony.instruments.canary")
    if QUIET_ROOT in os.environ and canary is not None:
        # Its work takes equally long each time, and most of what a short job takes: here it is not done.
        setattr(canary, "_fastest_ms", lambda _: 1.0)  # noqa: B010
        setattr(canary, "_MEMORY_BYTES", mmap.PAGESIZE)  # noqa: B010


def _quieten_counters() -> None:
    root, counters = os.environ.get(QUIET_ROOT), sys.modules.get("prony.instruments.counters")
    if root and counters is not None:
        counters.HostCounters.read.__func__.__defaults__ = (Path(root),)


@contextmanager
def quiet_process() -> Iterator[None]:
    """Have this process read counters that stand still while the block runs."""
    from prony.instruments.counters import HostCounters

    read = HostCounters.read.__func__  # type: ignore[attr-defined]
    before = read.__defaults__
    _quieten_counters()
    try:
        yield
    finally:
        read.__defaults__ = before
