"""Prony with a clock that is set while it runs, as `date -s` would; called like `prony`.

FLEET_CLOCK is a file that holds by how many seconds the clock is off. Monotonic time goes on as it does anywhere.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from prony.ports.clock import SystemClock

_FILE = Path(os.environ["FLEET_CLOCK"])
_true_now, _true_time = SystemClock.now, time.time


def offset_s() -> float:
    return float(_FILE.read_text() or 0)


def now(self: SystemClock) -> datetime:
    return _true_now(self) + timedelta(seconds=offset_s())


def set_clock() -> None:
    SystemClock.now = now  # type: ignore[method-assign]
    time.time = lambda: _true_time() + offset_s()


if __name__ == "__main__":
    set_clock()
    from prony.cli.main import main

    sys.exit(main())
