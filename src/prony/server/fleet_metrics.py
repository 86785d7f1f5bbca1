"""Render devices, running jobs and the newest results as Prometheus metrics, each with a limit on their number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from prony.model.agent import AgentState
from prony.model.history import Series

if TYPE_CHECKING:
    from prony.app.fleet.current_figures import DeviceReadings, JobProgress
    from prony.app.fleet.state import FleetState, HeldLease, KnownAgent

MOST_DEVICES = 1000
MOST_JOBS = 1000
# A waiting agent speaks every 30 s; what is older than three of these is no longer how the device is.
_FRESH_S = 90.0
_LONGEST_LABEL = 120
_MIB = 2.0**20
_OF_DEVICE = ("agent", "agent_id", "device")
# `job` is a label of Prometheus itself.
_OF_JOB = ("agent", "agent_id", "experiment_id", "job_id")
_OF_RESULT = ("series", "recipe", "title", "branch", "machine", "metric", "unit")


class ProbeCounter(NamedTuple):
    """What a probe's counter becomes; the groups of `pattern` are the values of `labels`."""

    pattern: re.Pattern[str]
    family: str
    meaning: str
    labels: tuple[str, ...] = ()
    scale: float = 1.0


def _counter(pattern: str, family: str, meaning: str, *labels: str, scale: float = 1.0) -> ProbeCounter:
    return ProbeCounter(re.compile(pattern), f"prony_device_{family}", meaning, labels, scale)


# A counter of a probe that is not here is not exported: what Prometheus keeps is known beforehand.
PROBED = (
    _counter(
        r"cpu_(busy|iowait|steal)_s_total", "cpu_seconds_total",
        "time of all CPUs, by `mode`: busy, iowait or steal", "mode",
    ),
    _counter(r"frequency_mean_mhz", "cpu_clock_hertz", "mean clock of the CPUs", scale=1e6),
    _counter(r"temperature_max_c", "temperature_celsius", "hottest sensor of the CPU"),
    _counter(r"memory_available_mib", "memory_available_bytes", "available memory", scale=_MIB),
    _counter(
        r"pressure_([a-z_]{1,20})_us_total", "pressure_seconds_total",
        "time in which some task waited for a resource", "resource", scale=1e-6,
    ),
    _counter(r"network_(received|sent)_bytes_total", "network_bytes_total", "bytes of the network", "direction"),
    _counter(r"disk_(read|written)_bytes_total", "disk_bytes_total", "bytes of the disks", "direction"),
    _counter(
        r"energy_([a-z0-9_]{1,30})_uj_total", "energy_joules_total", "energy, by domain", "domain", scale=1e-6
    ),
    _counter(r"gpu(\d{1,2})_busy", "gpu_busy_ratio", "share of the time in which the GPU worked", "gpu"),
    _counter(r"gpu(\d{1,2})_memory_used_mib", "gpu_memory_used_bytes", "used memory of the GPU", "gpu", scale=_MIB),
    _counter(r"gpu(\d{1,2})_power_w", "gpu_power_watts", "power of the GPU", "gpu"),
    _counter(r"gpu(\d{1,2})_temperature_c", "gpu_temperature_celsius", "temperature of the GPU", "gpu"),
    _counter(r"gpu(\d{1,2})_sm_mhz", "gpu_clock_hertz", "clock of the GPU's processors", "gpu", scale=1e6),
    _counter(
        r"gpu(\d{1,2})_held_([a-z_]{1,20})_ns_total", "gpu_held_seconds_total",
        "time in which the GPU's clock was throttled, by cause", "gpu", "cause", scale=1e-9,
    ),
)  # fmt: skip


@dataclass(eq=False)
class FleetCollector:
    """What Prometheus asks when it reads the page; everything comes from memory.

    `now_s` is the fleet's clock for lives, `now_unix_s` the time of day. `series` are the newest results, and
    `series_left_out` how many more there are.
    """

    state: FleetState
    now_s: Callable[[], float]
    now_unix_s: Callable[[], float]
    series: Sequence[Series] = ()
    series_left_out: int = 0

    def collect(self) -> Iterator[Metric]:
        """Yield every family, also those without a value now."""
        devices = _fresh_devices(self.state, self.now_s())
        jobs = [held for held in list(self.state.held.values()) if held.agent_id in self.state.agents]
        yield from _device_families(devices[:MOST_DEVICES], self.now_s(), self.now_unix_s())
        yield from _job_families(self.state, jobs[:MOST_JOBS])
        yield from _result_families(self.series)
        left_out = GaugeMetricFamily(
            "prony_metrics_left_out",
            "devices, jobs and series beyond the limits of this page: not shown",
            labels=("of",),
        )
        left_out.add_metric(("devices",), max(0, len(devices) - MOST_DEVICES))
        left_out.add_metric(("jobs",), max(0, len(jobs) - MOST_JOBS))
        left_out.add_metric(("results",), self.series_left_out)
        yield left_out


def _gauge(name: str, meaning: str, labels: Sequence[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=labels)


def _family(name: str, meaning: str, labels: Sequence[str]) -> Metric:
    if name.endswith("_total"):
        return CounterMetricFamily(name, meaning, labels=labels)
    return _gauge(name, meaning, labels)


# Devices


def _fresh_devices(state: FleetState, now_s: float) -> list[tuple[KnownAgent, DeviceReadings]]:
    """Return the agents that told what their probes read, and not too long ago."""
    found = []
    for agent_id, readings in list(state.live.readings.items()):
        known_agent = state.agents.get(agent_id)
        is_fresh = now_s - readings.heard_s <= _FRESH_S
        if known_agent is not None and known_agent.state is not AgentState.LOST and is_fresh:
            found.append((known_agent, readings))
    return found


def _device_families(
    devices: Iterable[tuple[KnownAgent, DeviceReadings]], now_s: float, now_unix_s: float
) -> Iterator[Metric]:
    read_at = _gauge("prony_device_read_timestamp_seconds", "when the device's readings came", _OF_DEVICE)
    cpus = _gauge("prony_device_cpus", "logical CPUs of the device", _OF_DEVICE)
    memory = _gauge("prony_device_memory_bytes", "memory of the device", _OF_DEVICE)
    families = {one.family: _family(one.family, one.meaning, (*_OF_DEVICE, *one.labels)) for one in PROBED}
    for known_agent, readings in devices:
        own = _device_labels(known_agent)
        read_at.add_metric(own, now_unix_s - (now_s - readings.heard_s))
        device = known_agent.capabilities.device
        if device is not None and device.hardware.cpu.logical_cores is not None:
            cpus.add_metric(own, device.hardware.cpu.logical_cores)
        if device is not None and device.hardware.memory_mib is not None:
            memory.add_metric(own, device.hardware.memory_mib * _MIB)
        for name, value in readings.values.items():
            found = _find_family(name)
            if found is not None:
                families[found[0]].add_metric((*own, *found[1]), value * found[2])  # type: ignore[attr-defined]
    yield from (read_at, cpus, memory, *families.values())


def _device_labels(known_agent: KnownAgent) -> tuple[str, str, str]:
    device = known_agent.capabilities.device
    return known_agent.name, known_agent.id, _label(device.name if device is not None else "")


@lru_cache(maxsize=4096)
def _find_family(counter: str) -> tuple[str, tuple[str, ...], float] | None:
    """Return the family of a probe's counter, the values of its labels and what makes it of the family's unit."""
    for one in PROBED:
        found = one.pattern.fullmatch(counter)
        if found is not None:
            return one.family, found.groups(), one.scale
    return None


# Jobs


def _job_families(state: FleetState, jobs: Iterable[HeldLease]) -> Iterator[Metric]:
    running = _gauge("prony_job_running", "1 for each job that an agent has", _OF_JOB)
    done = _gauge("prony_job_repetitions_done", "repetitions of the job that are done", _OF_JOB)
    total = _gauge("prony_job_repetitions", "planned repetitions of the job, where known", _OF_JOB)
    loads = LoadFamilies()
    for held in jobs:
        own = (state.agents[held.agent_id].name, held.agent_id, held.experiment_id, held.job_id)
        running.add_metric(own, 1)
        progress: JobProgress | None = state.live.progress.get(held.lease_id)
        if progress is None:
            continue
        if progress.total:
            done.add_metric(own, progress.done)
            total.add_metric(own, progress.total)
        loads.add(own, progress)
    yield from (running, done, total, *loads.families)


class LoadFamilies:
    """The figures of loads that run, of the last second where they are rates or quantiles.

    A language model on an engine has passes or answers, which are no requests: they have a family of their own.
    """

    def __init__(self) -> None:
        self._requests = CounterMetricFamily(
            "prony_job_requests_total",
            "requests of the load, by `outcome`: answered or failed",
            labels=(*_OF_JOB, "outcome"),
        )
        self._in_flight = _gauge("prony_job_requests_in_flight", "requests that wait for their answer", _OF_JOB)
        self._rate = _gauge("prony_job_requests_per_second", "answered requests in the last second", _OF_JOB)
        self._latency = _gauge(
            "prony_job_latency_seconds",
            "latency of the last second, by `quantile`: 0.5 or 0.99",
            (*_OF_JOB, "quantile"),
        )
        self._tokens = _gauge(
            "prony_job_tokens_per_second", "tokens of a language model on an engine, while it is timed", _OF_JOB
        )
        self._passes = CounterMetricFamily(
            "prony_job_passes_total", "passes, or answers of a task, of a language model on an engine", labels=_OF_JOB
        )
        self._elapsed = _gauge("prony_job_load_elapsed_seconds", "how long the load has run", _OF_JOB)
        self._left = _gauge("prony_job_load_left_seconds", "how long the load will still run", _OF_JOB)

    @property
    def families(self) -> tuple[Metric, ...]:
        return (
            self._requests, self._in_flight, self._rate, self._latency, self._tokens, self._passes, self._elapsed,
            self._left,
        )  # fmt: skip

    def add(self, own: tuple[str, ...], progress: JobProgress) -> None:
        live = progress.live
        if live is None:
            return
        if live.tokens_per_s is not None:
            self._passes.add_metric(own, live.done)
            self._tokens.add_metric(own, live.tokens_per_s)
            return
        self._requests.add_metric((*own, "answered"), live.done)
        self._requests.add_metric((*own, "failed"), live.failed)
        values = (
            (self._in_flight, own, live.in_flight), (self._rate, own, live.rate_per_s),
            (self._elapsed, own, live.elapsed_s), (self._left, own, live.left_s),
            (self._latency, (*own, "0.5"), None if live.p50_ms is None else live.p50_ms / 1e3),
            (self._latency, (*own, "0.99"), None if live.p99_ms is None else live.p99_ms / 1e3),
        )  # fmt: skip
        for family, labels, value in values:
            if value is not None:
                family.add_metric(labels, value)


# Results


def _result_families(series: Iterable[Series]) -> Iterator[Metric]:
    value = _gauge(
        "prony_result", "the newest result of a series that is not void, in its unit", (*_OF_RESULT, "verdict")
    )
    at = _gauge("prony_result_timestamp_seconds", "when the newest result of a series was measured", _OF_RESULT)
    for one in series:
        if one.last_value is None or one.last_at is None:
            continue
        own = tuple(map(_label, (one.id, one.name, one.title, one.branch, one.machine, one.metric, one.unit)))
        grade = one.last_grade
        value.add_metric((*own, "" if grade is None else grade.value), one.last_value)
        at.add_metric(own, one.last_at.timestamp())
    yield from (value, at)


def _label(text: str) -> str:
    return text[:_LONGEST_LABEL]
