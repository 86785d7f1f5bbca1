"""Read the counters of the machine and the service before, during and after a load, also from a Prometheus page."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from prony.instruments.noise import contamination
from prony.model.result import MachineUse, Noise, Repetition
from prony.ports.probe import Probe
from prony.runner.folder import TelemetryRow
from prony.runner.watch_gpu import average_card_use
from prony.runner.watch_machine import MachineWatch

_PERIOD_S = 1.0
_PATIENCE_S = 1.0
_MOST_BYTES = 4 * 2**20
_MOST_NAMES = 2000
# name{labels} value [timestamp]
_LINE = re.compile(r"^([A-Za-z_:][A-Za-z0-9_:]*(?:\{.*\})?)\s+(\S+)")


class MetricsPage:
    """Reads one page again and again; what it could not read is counted and never stops a load."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.failures = 0
        self.reason = ""
        self._next = 0.0

    def read(self) -> dict[str, float] | None:
        """Return every number of the page, or None where it is not time yet or the page does not come."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + _PERIOD_S
        try:
            return parse_metrics(self._fetch())
        except (OSError, HTTPException, ValueError) as exc:
            self.failures += 1
            self.reason = str(exc) or type(exc).__name__
            return None

    def _fetch(self) -> str:
        place = urlsplit(self.url)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        line = kind(place.hostname or "", place.port, timeout=_PATIENCE_S)
        try:
            line.request("GET", place.path or "/metrics", headers={"Accept": "text/plain"})
            answer = line.getresponse()
            if answer.status != 200:
                raise ValueError(f"it answered {answer.status}")
            return answer.read(_MOST_BYTES).decode(errors="replace")
        finally:
            line.close()


def parse_metrics(text: str) -> dict[str, float]:
    """Return the value of each series of Prometheus's text format; buckets of histograms are left out, for there are
    hundreds of them and their sums and counts tell the mean."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or "_bucket{" in match[1] or len(found) >= _MOST_NAMES:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            found[match[1]] = value
    return found


_PERIOD_NS = 10**9


class LoadTelemetry:
    """Watches one run. `machine` tells what else ran; `service_cpu_s` what the service has used and `service_rss_mib`
    its memory, None where it is not ours to ask."""

    def __init__(
        self,
        probes: Sequence[Probe],
        page: MetricsPage | None,
        machine: MachineWatch,
        service_cpu_s: Callable[[], float | None] | None = None,
        service_rss_mib: Callable[[], float | None] | None = None,
    ) -> None:
        self._probes = probes
        self._page = page
        self._machine = machine
        self._service_cpu_s = service_cpu_s
        self._service_rss_mib = service_rss_mib
        self._rows: list[tuple[int, str, dict[str, float]]] = []
        self._last_ns = 0
        self._energy: dict[str, float] = {}
        self._seen: list[dict[str, float]] = []
        self._service_s: tuple[float, int] | None = None
        self.noise = Noise()
        self.use = MachineUse()
        self.energy_j: dict[str, float] = {}

    def begin(self) -> None:
        self._energy = _energy(self._read())
        self._seen.clear()
        self._machine.begin()
        self._service_s = self._read_service_s()

    def tick(self) -> None:
        if time.perf_counter_ns() - self._last_ns >= _PERIOD_NS:
            self._machine.tick()
            self._read()

    def end(self) -> None:
        cores = self._service_cores()
        self.noise = self._machine.end()
        now = _energy(self._read())
        own = {} if cores is None else {"service_cores": cores}
        self.use = self._machine.use.model_copy(update=own | average_card_use(self._seen))
        self.energy_j = {name: (now[name] - begin) / 1e6 for name, begin in self._energy.items() if name in now}

    def add_telemetry(self, repetition: Repetition) -> Repetition:
        """Return the repetition with what was seen beside it."""
        changes = {
            "noise": self.noise,
            "use": self.use,
            "contamination": contamination(self.noise),
            "energy_j": self.energy_j,
        }
        return repetition.model_copy(update=changes)

    def rows(self, repetition: int) -> list[TelemetryRow]:
        return [(repetition, at_ns, name, values) for at_ns, name, values in self._rows]

    def _read_service_s(self) -> tuple[float, int] | None:
        """Return the CPU seconds of a service that was started here so far, and when that was."""
        used = self._service_cpu_s() if self._service_cpu_s is not None else None
        return None if used is None else (used, time.perf_counter_ns())

    def _service_cores(self) -> float | None:
        before, after = self._service_s, self._read_service_s()
        if before is None or after is None or after[1] <= before[1]:
            return None
        return max(0.0, after[0] - before[0]) / ((after[1] - before[1]) / 1e9)

    def _own(self) -> dict[str, float]:
        """Return what the service's own processes use; nothing where they are not ours to ask."""
        asked = {"service_cpu_s_total": self._service_cpu_s, "service_rss_mib": self._service_rss_mib}
        told = {name: ask() for name, ask in asked.items() if ask is not None}
        return {name: value for name, value in told.items() if value is not None}

    def _read(self) -> dict[str, float]:
        self._last_ns = time.perf_counter_ns()
        readings: dict[str, float] = {}
        for probe in self._probes:
            values = probe.read()
            self._rows.append((self._last_ns, probe.name, values))
            readings |= values
        self._seen.append(readings)
        own = self._own()
        if own:
            self._rows.append((self._last_ns, "process", own))
        told = self._page.read() if self._page is not None else None
        if told:
            self._rows.append((self._last_ns, "service", told))
        return readings


def _energy(readings: dict[str, float]) -> dict[str, float]:
    wanted = {name: value for name, value in readings.items() if name.startswith("energy_")}
    return {name.removeprefix("energy_").removesuffix("_uj_total"): value for name, value in wanted.items()}
