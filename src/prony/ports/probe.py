"""The seam for probes: counters read beside a run, off the timed path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, Protocol, runtime_checkable


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


@runtime_checkable
class CardProbe(Probe, Protocol):
    """A probe of accelerators. The counters of one card begin with its name: `gpu0_power_w`, `energy_gpu0_uj_total`.

    `<card>_held_<cause>_ns_total` is for how long the card's clock was held down.
    """

    def find_card(self, device_id: str) -> str | None:
        """Return what the counters call the card that has this name of its own; None where there is none."""

    def card_digest(self, card: str) -> str:
        """Return a digest of the card's own name, by which it can be compared and not read."""

    def read_energy_uj(self, card: str) -> float | None:
        """Read the card's energy counter alone; None where it has none."""

    def read_health(self, card: str) -> Mapping[str, float]:
        """Read what changes seldom and tells of trouble; takes longer than `read`, so only before and after.

        Args:
            card: As `find_card` names it.

        Returns:
            As far as the driver tells: `ecc_uncorrected_total`, `ecc_corrected_total` and `pcie_replay_total`, which
            only grow, and `link_generation`, `link_width` and `link_width_max` of the link to the host, now.
        """

    def read_others(self, card: str, since_us: int) -> Mapping[str, float] | None:
        """Say who else used the card.

        Args:
            card: As `find_card` names it.
            since_us: From when on, in microseconds since 1970.

        Returns:
            The share of the card's time by process, without those that `watch` named; None where that is not shown.
        """
