"""Find the bottleneck of a load: compute how busy each resource was, and compare that with thresholds.

The client is looked at first: where it was the limit, nothing can be said of the server. What nobody measured is not
guessed: where no series speaks of the server, the answer is `unknown`.

How busy a resource was is one number per run, from telemetry and client figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import numpy as np

from prony.model.experiment_data import Entry
from prony.model.loopback import is_loopback
from prony.model.result import Repetition
from prony.model.sweep import Bottleneck, Clue

if TYPE_CHECKING:
    import polars as pl


_NS_PER_S = 1e9
# Series of servers that count requests which wait, whoever names them; idle connections are not among them.
_WAITING = re.compile(
    r"num_requests_waiting|requests_deferred|requests_waiting|num_queue_reqs|pending_request_count|"
    r"queue_(?:size|length|depth)",
)
_CACHE = re.compile(r"cache_usage_perc")


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
    if facts.pid is not None or not facts.endpoint:
        return facts.pid is not None
    host = urlsplit(facts.endpoint).hostname
    return not host or is_loopback(host)


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
    if counter in _LEVELS or re.fullmatch(r"gpu\d+_(busy|memory_used_mib|tensor_share|dram_share)", counter):
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


# A process or a machine that uses this share of its cores has no moment to spare for what comes next.
_TENSOR_BUSY, _DRAM_BUSY = 0.50, 0.60  # a card's best programs reach little more than 0.8 of either
_CLIENT_BUSY, _MACHINE_BUSY, _SERVER_BUSY, _GPU_BUSY = 0.85, 0.95, 0.90, 0.90
_FOREIGN = 0.25
_ONE_CORE = (0.90, 1.10)
_DELIVERED_RATE, _DELIVERED_USERS = 0.98, 0.90
_LATE_OF_LATENCY = 0.5
_LATE_MS = 1.0
_MEMORY_LEFT, _PRESSURE_MEMORY, _PRESSURE_IO = 0.05, 0.10, 0.20
_CACHE_FULL = 0.95
_QUEUED = 1.0
_SERVER_SERIES = ("service_cores", "waiting_requests", "cache_usage")


def bottleneck_of(parts: Sequence[tuple[Entry, pl.DataFrame | None]]) -> Bottleneck:
    """Say where the limit of one level of load was, from the runs that count."""
    seen = utilisation(parts)
    entry = parts[0][0]
    median = entry.summary.estimates.get("e2e_ms.p50")
    is_open = entry.job.load.open is not None
    clues = (
        *_client(seen, median.value if median is not None else None, is_open=is_open),
        *_machine(seen), *_server(seen),
    )  # fmt: skip
    return _choose_bottleneck(seen, clues)


def _choose_bottleneck(seen: Utilisation, clues: Sequence[Clue]) -> Bottleneck:
    """Choose among what is over its threshold: others, the client, the server's parts, then what both share."""
    over = {clue.series: clue for clue in clues if clue.is_over}
    for rule in _RULES:
        if (found := rule(over)) is not None:
            return found.model_copy(update={"clues": tuple(clues)})
    return _nothing_over(seen, clues)


def _nothing_over(seen: Utilisation, clues: Sequence[Clue]) -> Bottleneck:
    kept = tuple(clues)
    is_server_seen = any(name in seen.values for name in _SERVER_SERIES) or bool(seen.matching(r"gpu\d+_busy"))
    if not is_server_seen and not (seen.is_local and "cpu_busy" in seen.values):
        why = "the server was not monitored" if seen.values else "neither side was monitored"
        room = ", and the client had room to spare" if any(clue.side == "client" for clue in clues) else ""
        text = f"Unknown: {why}{room}. Watch its /metrics page (workload.metrics_url), or let Prony start it."
        return Bottleneck(where="unknown", text=text, clues=kept)
    watched = ", ".join(clue.text.partition(":")[0] for clue in clues if clue.threshold is not None)
    return Bottleneck(
        where="none", text=f"None: everything that was monitored had room to spare ({watched}).", clues=kept
    )


# Clues


_Place = tuple[Literal["client", "server", "machine"], str, str]


def _clue(place: _Place, value: float, threshold: float | None, text: str, *, over: bool = False) -> Clue:
    side, series, unit = place
    return Clue(side=side, series=series, value=value, unit=unit, threshold=threshold, is_over=over, text=text)


def _client(seen: Utilisation, median_ms: float | None, *, is_open: bool) -> Iterator[Clue]:
    if (busy := seen.of("client_cpu_busiest")) is not None:
        text = f"busiest client process: {busy:.0%} of a core, full from {_CLIENT_BUSY:.0%}"
        yield _clue(("client", "client_cpu_busiest", "1"), busy, _CLIENT_BUSY, text, over=busy >= _CLIENT_BUSY)
    if (share := seen.of("client_delivered")) is not None:
        least = _DELIVERED_RATE if is_open else _DELIVERED_USERS
        text = f"load that the clients delivered: {share:.1%} of the requested load; below {least:.0%} is too little"
        yield _clue(("client", "client_delivered", "1"), share, least, text, over=share < least)
    late, name = seen.of("client_sent_late_p99_ms"), "client_sent_late_p99_ms"
    if late is not None and median_ms:
        least_ms = max(_LATE_MS, _LATE_OF_LATENCY * median_ms)
        text = f"requests sent late: {late:.3g} ms at the 99th percentile, too late from {least_ms:.3g} ms"
        yield _clue(("client", name, "ms"), late, least_ms, text, over=late >= least_ms)
    lag = seen.of("client_read_late_p50_ms")
    if lag is not None and median_ms and not is_open:
        least_ms = _LATE_OF_LATENCY * median_ms
        text = (
            f"replies read late: {lag:.3g} ms at the median, too late from {least_ms:.3g} ms (half of a reply's "
            "own time)"
        )
        yield _clue(("client", "client_read_late_p50_ms", "ms"), lag, least_ms, text, over=lag >= least_ms)


def _machine(seen: Utilisation) -> Iterator[Clue]:
    side: Literal["machine", "client"] = "machine" if seen.is_local else "client"
    if (busy := seen.of("cpu_busy")) is not None:
        named = (("server", "service_cores"), ("clients", "client_cpu_cores"))
        parts = [f"{name} {value:.2f}" for name, series in named if (value := seen.of(series)) is not None]
        cores = f" ({', '.join(parts)} of {seen.cores:g} cores)" if parts else ""
        text = f"CPUs of this machine: {busy:.0%} busy, full from {_MACHINE_BUSY:.0%}{cores}"
        yield _clue((side, "cpu_busy", "1"), busy, _MACHINE_BUSY, text, over=busy >= _MACHINE_BUSY)
    if (foreign := seen.of("foreign_cpu")) is not None:
        text = f"other processes: {foreign:.0%} of the CPUs; {_FOREIGN:.0%} or more is too much"
        yield _clue(("machine", "foreign_cpu", "1"), foreign, _FOREIGN, text, over=foreign >= _FOREIGN)
    if (left := seen.of("memory_available_mib")) is not None and seen.memory_mib:
        share = left / seen.memory_mib
        text = f"free memory: {share:.0%}; less than {_MEMORY_LEFT:.0%} is too little"
        yield _clue((side, "memory_available", "1"), share, _MEMORY_LEFT, text, over=share < _MEMORY_LEFT)
    for series, most, word in (("pressure_memory", _PRESSURE_MEMORY, "memory"), ("pressure_io", _PRESSURE_IO, "disk")):
        if (value := seen.of(series)) is not None:
            text = f"waiting for {word}: {value:.1%} of the time; {most:.0%} or more is too much"
            yield _clue((side, series, "1"), value, most, text, over=value >= most)
    sent, received = seen.of("network_sent_bytes_per_s"), seen.of("network_received_bytes_per_s")
    if sent is not None and received is not None:
        # How fast the wire is, nobody tells: it is shown, and judges nothing.
        rate = (sent + received) / 1e6
        text = f"network without loopback: {rate:.3g} MB/s, link speed unknown"
        yield _clue((side, "network", "MB/s"), rate, None, text)


def _server(seen: Utilisation) -> Iterator[Clue]:
    if (cores := seen.of("service_cores")) is not None:
        most = _SERVER_BUSY * seen.cores
        single = seen.cores > 1 and _ONE_CORE[0] <= cores <= _ONE_CORE[1]
        limit = _ONE_CORE[0] if single else most
        full = f"one of its threads is full from {limit:.2g}" if single else f"full from {limit:.2g} of {seen.cores:g}"
        over = single or cores >= most
        text = f"processes of the server: {cores:.2f} cores, {full}"
        yield _clue(("server", "service_cores", "cores"), cores, limit, text, over=over)
    for series in seen.matching(r"gpu\d+_busy"):
        busy = seen.of(series) or 0.0
        text = f"{series.partition('_')[0]}: {busy:.0%} busy, full from {_GPU_BUSY:.0%}"
        yield _clue(("server", series, "1"), busy, _GPU_BUSY, text, over=busy >= _GPU_BUSY)
        yield from _parts_of_card(seen, series.partition("_")[0])
    if (cache := seen.of("cache_usage")) is not None:
        text = f"the server's cache of tokens: {cache:.0%} used, full from {_CACHE_FULL:.0%}"
        yield _clue(("server", "cache_usage", "1"), cache, _CACHE_FULL, text, over=cache >= _CACHE_FULL)
    if (waiting := seen.of("waiting_requests")) is not None:
        text = f"requests that waited in the server: {waiting:.3g} at a time, a queue from {_QUEUED:g}"
        yield _clue(("server", "waiting_requests", "1"), waiting, _QUEUED, text, over=waiting >= _QUEUED)


def _parts_of_card(seen: Utilisation, card: str) -> Iterator[Clue]:
    """Say what of a card was used while it was busy, where its driver tells."""
    for name, most, word in (
        ("dram_share", _DRAM_BUSY, "memory bandwidth"), ("tensor_share", _TENSOR_BUSY, "tensor cores"),
    ):  # fmt: skip
        if (share := seen.of(f"{card}_{name}")) is not None:
            text = f"{card}'s {word}: {share:.0%} used, full from {most:.0%}"
            yield _clue(("server", f"{card}_{name}", "1"), share, most, text, over=share >= most)


# Rules, in the order in which they are asked

_Over = dict[str, Clue]
_Rule = Callable[[_Over], Bottleneck | None]


def _others(over: _Over) -> Bottleneck | None:
    if "cpu_busy" not in over or "foreign_cpu" not in over:
        return None
    text = f"Other processes of this machine: {over['cpu_busy'].text}; {over['foreign_cpu'].text}."
    return Bottleneck(where="others", what="cpu", text=text)


_Part = Literal["cpu", "memory", "disk", "queue"]
# What of the client's machine was full, by a part of the series' name; else it was late, with nothing full.
_CLIENT_PARTS: tuple[tuple[str, _Part], ...] = (("cpu", "cpu"), ("memory", "memory"), ("pressure_io", "disk"))
_LATE: _Part = "queue"


def _client_limit(over: _Over) -> Bottleneck | None:
    mine = [clue for clue in over.values() if clue.side == "client"]
    if not mine:
        return None
    what = next((name for part, name in _CLIENT_PARTS if any(part in clue.series for clue in mine)), _LATE)
    told = "; ".join(clue.text for clue in mine)
    return Bottleneck(where="client", what=what, text=f"The client, so the server's limit is unknown: {told}.")


def _gpu(over: _Over) -> Bottleneck | None:
    if "cache_usage" in over and "waiting_requests" in over:
        told = f"{over['cache_usage'].text}; {over['waiting_requests'].text}"
        return Bottleneck(where="server", what="gpu memory", text=f"The server's memory for tokens: {told}.")
    full = next((clue for name, clue in over.items() if re.fullmatch(r"gpu\d+_busy", name)), None)
    if full is None:
        return None
    card, told = full.series.partition("_")[0], full.text
    if (dram := over.get(f"{card}_dram_share")) is not None:
        text = f"The memory bandwidth of the server's GPU: {told}; {dram.text}."
        return Bottleneck(where="server", what="gpu bandwidth", text=text)
    if (tensor := over.get(f"{card}_tensor_share")) is not None:
        text = f"The arithmetic of the server's GPU: {told}; {tensor.text}."
        return Bottleneck(where="server", what="gpu compute", text=text)
    return Bottleneck(where="server", what="gpu", text=f"The server's GPU: {told}.")


def _memory(over: _Over) -> Bottleneck | None:
    mine = [clue for name in ("memory_available", "pressure_memory") if (clue := over.get(name)) is not None]
    told = "; ".join(clue.text for clue in mine)
    return Bottleneck(where="machine", what="memory", text=f"Memory: {told}.") if mine else None


def _server_cpu(over: _Over) -> Bottleneck | None:
    if "service_cores" not in over:
        return None
    return Bottleneck(where="server", what="cpu", text=f"The server's CPU: {over['service_cores'].text}.")


def _shared_cpu(over: _Over) -> Bottleneck | None:
    if "cpu_busy" not in over:
        return None
    text = f"The CPUs that server and clients share: {over['cpu_busy'].text}."
    return Bottleneck(
        where="machine", what="cpu", text=f"{text} To tell them apart, run the clients on another machine."
    )


def _disk(over: _Over) -> Bottleneck | None:
    if "pressure_io" not in over:
        return None
    return Bottleneck(where="machine", what="disk", text=f"The disk: {over['pressure_io'].text}.")


def _queue(over: _Over) -> Bottleneck | None:
    if "waiting_requests" not in over:
        return None
    text = (
        f"A queue in the server: {over['waiting_requests'].text}, but no monitored resource was full. The "
        "server's settings may limit its concurrency."
    )
    return Bottleneck(where="server", what="queue", text=text)


_RULES: tuple[_Rule, ...] = (_others, _client_limit, _gpu, _memory, _server_cpu, _shared_cpu, _disk, _queue)
