"""Compute how busy each resource of a load was, one number per run, from telemetry and client figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from prony.model.experiment_data import Entry
from prony.model.result import Repetition

if TYPE_CHECKING:
    import polars as pl

_NS_PER_S = 1e9
# Series of servers that count requests which wait, whoever names them; idle connections are not among them.
_WAITING = re.compile(
    r"num_requests_waiting|requests_deferred|requests_waiting|num_queue_reqs|pending_request_count|"
    r"queue_(?:size|length|depth)",
)
_CACHE = re.compile(r"cache_usage_perc")
_LOCAL = ("127.0.0.1", "localhost", "::1", "")


@dataclass(frozen=True)
class Utilisation:
    """One value a run of each series that was measured; what nobody measured is not there."""

    cores: float
    memory_mib: float
    is_local: bool
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def of(self, series: str) -> float | None:
        """Return the middle of the runs; None where the series does not exist."""
        found = self.values.get(series)
        return float(np.median(found)) if found else None

    def matching(self, pattern: str) -> list[str]:
        return [name for name in self.values if re.fullmatch(pattern, name)]


def utilisation(parts: Sequence[tuple[Entry, pl.DataFrame | None]]) -> Utilisation:
    """Gather the runs that count; `parts` are jobs of one load with their telemetry."""
    found: dict[str, list[float]] = {}
    for entry, telemetry in parts:
        by_run = _by_run(telemetry)
        for one in entry.result.repetitions:
            if one.index in entry.summary.used:
                for name, value in (_read_client_figures(one) | _read_telemetry(by_run.get(one.index), one)).items():
                    found.setdefault(name, []).append(value)
    hardware = parts[0][0].environment.device.hardware
    cores, logical = hardware.cpu.usable_cores or 0, hardware.cpu.logical_cores
    fixed = {name: tuple(values) for name, values in found.items()}
    if "cpu_busy_cores" in fixed and logical:
        fixed["cpu_busy"] = tuple(value / logical for value in fixed["cpu_busy_cores"])
    return Utilisation(float(cores), float(hardware.memory_mib or 0), _is_local(parts[0][0]), fixed)


def _is_local(entry: Entry) -> bool:
    """Does the server run on the machine whose counters were read?"""
    facts = entry.result.service
    if facts is None:
        return False
    return facts.pid is not None or (bool(facts.endpoint) and (urlsplit(facts.endpoint).hostname or "") in _LOCAL)


def _read_client_figures(one: Repetition) -> dict[str, float]:
    """Return what the clients and the kernel told of the whole run."""
    found: dict[str, float | None] = {
        "foreign_cpu": one.noise.foreign_cpu,
        "pressure_memory": one.noise.pressure_memory,
        "pressure_io": one.noise.pressure_io,
        "swapped_pages": one.noise.swapped_pages,
        "quota_throttled_ms": one.noise.quota_throttled_ms,
    }
    if one.client is not None:
        found |= {
            "client_cpu_busiest": max(one.client.cpu_shares, default=None),
            "client_cpu_cores": sum(one.client.cpu_shares) if one.client.cpu_shares else None,
            "client_delivered": one.client.delivered_share,
            "client_sent_late_p99_ms": one.client.sent_late_p99_ms,
            "client_read_late_p50_ms": one.client.kernel_lag_p50_ms,
        }
    return {name: float(value) for name, value in found.items() if value is not None}


def _by_run(telemetry: pl.DataFrame | None) -> dict[int, pl.DataFrame]:
    if telemetry is None or not telemetry.height:
        return {}
    return {int(part["repetition"][0]): part for part in telemetry.partition_by("repetition", maintain_order=True)}


def _read_telemetry(rows: pl.DataFrame | None, one: Repetition) -> dict[str, float]:
    """Return totals as rates and the rest as means, over the readings taken while requests were sent."""
    if rows is None:
        return {}
    phase = one.phases.get("measure")
    series: dict[str, tuple[list[int], list[float]]] = {}
    for at_ns, counter, value in rows.select("at_ns", "counter", "value").iter_rows():
        times, values = series.setdefault(counter, ([], []))
        times.append(at_ns)
        values.append(value)
    found: dict[str, float] = {}
    for counter, (times, values) in series.items():
        inside = [place for place, at in enumerate(times) if phase and phase.begin_ns <= at <= phase.end_ns]
        kept = inside if len(inside) > 1 else range(len(times))
        found |= _number(counter, [times[place] for place in kept], [values[place] for place in kept])
    return _add_queues(found)


def _number(counter: str, times: Sequence[int], values: Sequence[float]) -> dict[str, float]:
    if counter.endswith("_total") and counter in _RATES:
        seconds = (times[-1] - times[0]) / _NS_PER_S
        return {_RATES[counter]: (values[-1] - values[0]) / seconds} if seconds > 0 else {}
    if counter in _LEVELS or re.fullmatch(r"gpu\d+_(busy|memory_used_mib)", counter):
        return {counter: float(np.mean(values))}
    if _WAITING.search(counter):
        return {f"waiting:{counter}": float(np.mean(values))}
    return {f"cache:{counter}": float(np.mean(values))} if _CACHE.search(counter) else {}


def _add_queues(found: dict[str, float]) -> dict[str, float]:
    """Return what waits in all queues of a page, beside the rest; one page has a line for each model."""
    waiting: Iterable[float] = [value for name, value in found.items() if name.startswith("waiting:")]
    cache: Iterable[float] = [value for name, value in found.items() if name.startswith("cache:")]
    kept = {name: value for name, value in found.items() if not name.startswith(("waiting:", "cache:"))}
    if waiting:
        kept["waiting_requests"] = sum(waiting)
    if cache:
        kept["cache_usage"] = max(cache)
    return kept


_RATES = {
    "cpu_busy_s_total": "cpu_busy_cores",
    "service_cpu_s_total": "service_cores",
    "network_received_bytes_total": "network_received_bytes_per_s",
    "network_sent_bytes_total": "network_sent_bytes_per_s",
    "disk_read_bytes_total": "disk_read_bytes_per_s",
    "disk_written_bytes_total": "disk_written_bytes_per_s",
}
_LEVELS = ("memory_available_mib", "service_rss_mib")
