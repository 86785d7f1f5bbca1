"""The machine beside a repetition: counters around the measured window, and telemetry while it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from prony.instruments.counters import HostCounters, busy_share, oom_kills
from prony.instruments.noise import contamination, noise_between
from prony.instruments.processes import sample_busiest
from prony.model.job import Job
from prony.model.result import MachineUse, Noise
from prony.ports import plugins
from prony.ports.probe import Probe
from prony.runner.child.wire import Message
from prony.runner.context import RunContext
from prony.runner.folder import TelemetryRow
from prony.runner.host import Watch
from prony.runner.watch_gpu import GpuWatch, average_card_use
from prony.runner.watch_machine import EXACT_READINGS, MachineWatch

_PERIOD_NS = 10**9
_SHORT_PERIOD_NS = 250_000_000
_WELL_SEEN_S = 1.0


def open_probes() -> list[Probe]:
    """Return every probe that has something to read on this machine."""
    probes: list[Probe] = [plugins.load_plugin(plugins.PROBES, name)() for name in plugins.find_plugins(plugins.PROBES)]
    return [probe for probe in probes if probe.available() is None]


@contextmanager
def use_probes() -> Iterator[list[Probe]]:
    """Give every probe that has something to read on this machine, and close them at the end."""
    probes = open_probes()
    try:
        yield probes
    finally:
        for probe in probes:
            probe.close()


class Observer:
    """Watches one repetition. The child waits while `ready` reads, so the window is exact.

    Where `machine` watches, it says what else ran; else the child tells its own CPU time."""

    def __init__(self, probes: list[Probe], repetition: int, machine: MachineWatch | None = None) -> None:
        self._probes = probes
        self._machine = machine
        self._repetition = repetition
        self._last_ns = time.perf_counter_ns()
        self._pid = 0
        self._at_warmup: HostCounters | None = None
        self._before: HostCounters | None = None
        self._totals: dict[str, float] = {}
        self._is_measuring = False
        self.rows: list[TelemetryRow] = []
        self._seen: list[dict[str, float]] = []
        self.noise = Noise()
        self._use = MachineUse()
        self.contamination: tuple[str, ...] = ()
        self.energy_j: dict[str, float] = {}
        self.vram_peak_mib: float | None = None
        self.gpu = GpuWatch(probes)

    def phase(self, name: str) -> None:
        if name == "load":
            self.gpu.note_idle(self._read())
        if name == "warmup":
            self._at_warmup = HostCounters.read()
        self.gpu.enter(name, self._read)

    def ready(self, message: Message | None = None) -> bool:
        """Read everything before the measured window; False where a GPU must warm up further first."""
        readings = self._read()
        if not self.gpu.is_settled(message or {}, self._last_ns, readings):
            return False
        self._is_measuring = True
        self._totals = _energy(readings)
        if self._machine is not None:
            self._machine.begin()
        else:
            self._before = HostCounters.read()
        return True

    def note_measurement(self, message: Message) -> None:
        """Say what else ran meanwhile."""
        if self._machine is not None:
            self.noise, self._use = self._machine.end(), self._machine.use
        elif self._before is not None:
            self.noise = self._noise_of(self._before, message)
        else:
            return
        totals = _energy(self._read())
        self._is_measuring = False
        self.energy_j = {
            name: (totals[name] - begin) / 1e6 for name, begin in self._totals.items() if totals.get(name, 0) > begin
        }
        self.noise = _with_names(self.noise)
        self.contamination = contamination(self.noise)

    def _noise_of(self, before: HostCounters, message: Message) -> Noise:
        after = HostCounters.read()
        self._use = MachineUse(machine_cpu=busy_share(before, after))
        noise = _noise(before, after, message["cpu_ns"])
        if self._at_warmup is not None and (noise.window_s or 0.0) < _WELL_SEEN_S:
            # The CPU's counters move in ticks: over so short a window they see nothing. With the warm-up they do.
            longer = _noise(self._at_warmup, after, message["cpu_since_warmup_ns"])
            noise = longer.model_copy(update={name: getattr(noise, name) for name in EXACT_READINGS})
        return noise

    @property
    def use(self) -> MachineUse:
        """What was in use while it measured: of the cards, the job's own, and the busiest where it may use any."""
        gpu = average_card_use(self._seen) if self._machine is not None else self.gpu.average_use()
        return self._use.model_copy(update=gpu)

    def tick(self, pid: int) -> None:
        if pid != self._pid:
            self._pid = pid
            for probe in self._probes:
                probe.watch({pid})
        self.gpu.meter()
        period_ns = _SHORT_PERIOD_NS if self.gpu.is_metering or self.gpu.is_warming else _PERIOD_NS
        if time.perf_counter_ns() - self._last_ns >= period_ns:
            self._read()

    def tick_s(self) -> float:
        """Return how often `tick` wants to be called at least."""
        return self.gpu.tick_s

    def _read(self) -> dict[str, float]:
        self._last_ns = time.perf_counter_ns()
        readings: dict[str, float] = {}
        for probe in self._probes:
            values = probe.read()
            self.rows.append((self._repetition, self._last_ns, probe.name, values))
            readings |= values
        self.gpu.take(self._last_ns, readings)
        if self._is_measuring:
            self._seen.append(readings)
        used = readings.get("vram_used_mib")
        if used is not None and (self._is_measuring or self.gpu.is_metering):
            self.vram_peak_mib = max(used, self.vram_peak_mib or 0.0)
        return readings


def _with_names(noise: Noise) -> Noise:
    """Add who uses the CPU just now, where others disturbed the run: who does mostly goes on."""
    is_disturbed = any(reason.startswith("foreign_cpu") for reason in contamination(noise))
    return noise.model_copy(update={"busiest": sample_busiest()}) if is_disturbed and not noise.busiest else noise


def _noise(before: HostCounters, after: HostCounters, child_cpu_ns: int) -> Noise:
    own_cpu_s = after.own_cpu_s - before.own_cpu_s + child_cpu_ns / 1e9
    return noise_between(before, after, own_cpu_s, _our_cpus())


def _our_cpus() -> Collection[int] | None:
    """Return the CPUs that the engine may use; None where the system does not tell."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def _energy(readings: Mapping[str, float]) -> dict[str, float]:
    """Return the energy counters in microjoules by domain."""
    wanted = {name: value for name, value in readings.items() if name.startswith("energy_")}
    return {name.removeprefix("energy_").removesuffix("_uj_total"): value for name, value in wanted.items()}


def watch_order(job: Job, observer: Observer, around: RunContext) -> Watch:
    """Return the limits of one order to an engine's child, and who hears of its phases."""

    def enter(phase: str) -> None:
        observer.phase(phase)
        around.say("phase", job, phase=phase)

    return Watch(
        timeout_ns=job.limits.timeout, memory_bytes=job.limits.memory,
        stop_asked=around.stop_asked, on_phase=enter, on_ready=observer.ready,
        on_measured=observer.note_measurement, on_tick=observer.tick, tick_s=observer.tick_s, oom_kills=oom_kills,
    )  # fmt: skip
