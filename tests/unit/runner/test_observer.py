"""What is read beside a repetition, and for which of its phases it stands."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import ClassVar

import pytest

from prony.instruments.counters import CpuTimes, HostCounters
from prony.runner import observer as module
from prony.runner.observer import Observer, use_probes
from prony.runner.watch_machine import MachineWatch


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
        self.is_closed = True


def observed(*readings: dict[str, float]) -> Observer:
    """Read once while loading, before and after the measured phase, and once more while checking."""
    gauge = Gauge()
    observer = Observer([gauge], 0)
    measured = partial(observer.note_measurement, {"cpu_ns": 0})
    steps: list[Callable[[], object]] = [observer._read, observer.ready, measured, observer._read]
    for step, says in zip(steps, readings, strict=True):
        gauge.says = says  # type: ignore[misc]
        step()
    return observer


def test_probes_are_closed_when_a_run_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    gauge = Gauge()
    monkeypatch.setattr(module, "open_probes", lambda: [gauge])
    with pytest.raises(KeyboardInterrupt), use_probes():
        raise KeyboardInterrupt
    assert gauge.is_closed


def test_device_memory_of_other_phases_is_not_that_of_the_measured_one() -> None:
    peaks = [{"vram_used_mib": float(used)} for used in (900, 300, 400, 800)]
    assert observed(*peaks).vram_peak_mib == 400


def test_energy_is_the_counters_growth_over_the_measured_phase() -> None:
    totals = [{"energy_package_0_uj_total": float(total)} for total in (0, 5e6, 7e6, 9e6)]
    assert observed(*totals).energy_j == {"package_0": 2.0}


def test_a_script_may_use_any_card_so_the_busiest_is_told() -> None:
    cards = [
        {"gpu0_busy": first, "gpu0_memory_busy": 0.1, "gpu1_busy": second, "gpu1_memory_busy": 0.6}
        for first, second in ((1.0, 1.0), (0.9, 0.9), (0.2, 0.8), (0.0, 0.0))
    ]
    gauge = Gauge()
    observer = Observer([gauge], 0, MachineWatch())
    steps: list[Callable[[], object]] = [observer.ready, partial(observer.note_measurement, {})]
    for step, says in zip(steps, cards[1:3], strict=True):
        gauge.says = says  # type: ignore[misc]
        step()
    assert (observer.use.gpu, observer.use.gpu_memory) == (0.8, 0.6)
    assert observer.use.machine_cpu is None or 0 <= observer.use.machine_cpu <= 1


def test_a_model_on_the_cpu_used_no_card() -> None:
    busy = [{"gpu0_busy": 1.0}] * 4
    assert observed(*busy).use.gpu is None


def counters(at_s: float, busy_s: float, swapped_pages: int = 0) -> HostCounters:
    return HostCounters(
        at_ns=int(at_s * 1e9), cpus={0: CpuTimes(busy_s, 0.0, 0.0, 0.0)}, pressure_us={}, throttled_us=None,
        thermal_events=None, swapped_pages=swapped_pages, oom_kills=None, own_cpu_s=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(("child_s", "codes"), [(0.2, ["foreign_cpu"]), (0.5, [])])
def test_a_short_window_is_stretched_back_to_the_warm_up(
    monkeypatch: pytest.MonkeyPatch, child_s: float, codes: list[str]
) -> None:
    # The child ran for half a second; a page was swapped while it warmed up.
    readings = iter([counters(1.0, 0.0), counters(1.49, 0.49, 1), counters(1.5, 0.5, 1)])
    monkeypatch.setattr(HostCounters, "read", lambda: next(readings))
    monkeypatch.setattr("prony.runner.observer._our_cpus", lambda: None)
    observer = Observer([], 0)
    observer.phase("warmup")
    observer.ready()
    observer.note_measurement({"cpu_ns": 10_000_000, "cpu_since_warmup_ns": int(child_s * 1e9)})
    assert observer.noise.window_s == pytest.approx(0.5)
    assert observer.noise.swapped_pages == 0
    assert observer.use.machine_cpu == pytest.approx(1.0)
    assert [reason.partition(":")[0] for reason in observer.contamination] == codes
