"""What is read beside a repetition, and for which of its phases it stands."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from prony.run.observer import Observer


class Gauge:
    """A probe that says what it is told to."""

    name: ClassVar[str] = "gauge"
    says: ClassVar[dict[str, float]] = {}

    def available(self) -> str | None:
        return None

    def read(self) -> dict[str, float]:
        return dict(self.says)

    def watch(self, pids: Collection[int]) -> None:
        self.pids = pids

    def close(self) -> None:
        return None


def observed(*readings: dict[str, float]) -> Observer:
    """Read once while loading, before and after the measured phase, and once more while checking."""
    gauge = Gauge()
    observer = Observer([gauge], 0)
    steps = (observer._read, observer.ready, lambda: observer.measured({"cpu_ns": 0}), observer._read)
    for step, says in zip(steps, readings, strict=True):
        gauge.says = says  # type: ignore[misc]
        step()
    return observer


def test_device_memory_of_other_phases_is_not_that_of_the_measured_one() -> None:
    peaks = [{"vram_used_mib": float(used)} for used in (900, 300, 400, 800)]
    assert observed(*peaks).vram_peak_mib == 400


def test_energy_is_the_counters_growth_over_the_measured_phase() -> None:
    totals = [{"energy_package_0_uj_total": float(total)} for total in (0, 5e6, 7e6, 9e6)]
    assert observed(*totals).energy_j == {"package_0": 2.0}
