"""Wait for what other processes do: as long as a busy machine may need, and with a word about what did not come."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 240.0


def wait_for(is_so: Callable[[], bool], what: str = "it to come so far", within_s: float = PATIENCE_S) -> None:
    """Wait until something is so, and say what was not when it takes too long."""
    deadline = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within_s:g} s for {what}")
        time.sleep(0.02)
