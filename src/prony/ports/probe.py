"""The seam for probes: counters read beside a run, off the timed path."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Protocol


class Probe(Protocol):
    """Reads one family of counters.

    `read` returns values by counter name; a name that ends in `_total` only ever grows, so that a difference of two
    readings is what happened between them, and any other is a state at this instant. A counter the machine does
    not offer is absent, never zero. Energy is `energy_<domain>_uj_total`; device memory is `vram_used_mib`.
    """

    name: ClassVar[str]

    def available(self) -> str | None:
        """Return why this probe has nothing to read here, or None. Must be cheap and never raise."""

    def read(self) -> dict[str, float]:
        """Read every counter once; must take well under a millisecond for what is read often."""

    def watch(self, pids: Collection[int]) -> None:
        """Say whose share is wanted from now on, for counters that can be told apart by process.

        Args:
            pids: The processes that belong to the run.
        """

    def close(self) -> None:
        """Let go of what it holds open; nothing is read afterwards."""
