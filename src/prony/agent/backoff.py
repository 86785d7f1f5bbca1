"""Growing pauses between tries that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator


class Backoff:
    """How long to wait before the next try: longer after each failure, nothing after a success.

    `delays` makes the pauses; they are scattered, so that many agents do not come back in the same instant."""

    def __init__(self, delays: Callable[[], Iterator[float]]) -> None:
        self._delays = delays
        self._pauses = delays()
        self._due_s = 0.0

    @property
    def wait_s(self) -> float:
        """Seconds until the next try; 0 when it may be made now."""
        return max(0.0, self._due_s - time.monotonic())

    def fail(self, at_least_s: float = 0.0) -> None:
        """Note a failure; `at_least_s` is the pause that the other side asks for."""
        self._due_s = time.monotonic() + max(at_least_s, next(self._pauses))

    def reset(self) -> None:
        """Note a success: the next failure begins with the shortest pause again."""
        self._pauses = self._delays()
        self._due_s = 0.0
