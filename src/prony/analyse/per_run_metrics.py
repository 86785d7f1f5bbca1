"""Compute the metrics that have one number per run: cold start, throughput, CPU time, memory, energy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prony.analyse.estimates import EstimateSet, single_estimates
from prony.analyse.runs import NS_PER_MS, MeasuredRun
from prony.analyse.selection import Selection
from prony.model.result import Phase, Repetition
from prony.ports.unit_names import unit_number

_KIB_PER_MIB = 1024
_SHORTEST_FOR_ENERGY_NS = 500_000_000
# The energy counter of a card steps ten times a second: two seconds give 5 %.
_SHORTEST_FOR_GPU_ENERGY_NS = 2_000_000_000
_NS_PER_S = 1e9
_ON_NVIDIA = ("cuda", "tensorrt")
_ON_ANY_CARD = ("directml", "dml", "webgpu")
_NO_PHASE = Phase(begin_ns=0, end_ns=0, cpu_ns=0)

Reading = Callable[[Repetition], float | None]


def cold_estimates(
    selection: Selection, durations_ms: Mapping[int, Mapping[str, float]], imports: Iterable[Repetition]
) -> EstimateSet:
    """Return load, first inference, both together, and import."""
    taken = [durations_ms[repetition.index] for repetition in selection.cold]
    whole = [phases for phases in taken if "load" in phases and "first" in phases]
    columns = {
        "load_ms": [phases["load"] for phases in taken if "load" in phases],
        "first_inference_ms": [phases["first"] for phases in taken if "first" in phases],
        "cold_start_ms": [phases["load"] + phases["first"] for phases in whole],
    }
    found = EstimateSet()
    for metric, values in columns.items():
        found |= single_estimates(metric, values, "cold starts", full=True)
    # Children forked from one spawner share its import: the same nanoseconds are one event, however often told.
    known = sorted(imports, key=lambda repetition: repetition.index)
    imported = dict.fromkeys(repetition.import_ns for repetition in known if repetition.import_ns is not None)
    return found | single_estimates("import_ms", [ns / NS_PER_MS for ns in imported], "imports", full=False)


def run_estimates(
    selection: Selection,
    runs: Mapping[int, MeasuredRun],
    *,
    batch_size: int,
    unit: str,
    is_stopped: bool = False,
) -> EstimateSet:
    """Return throughput, CPU time, memory and energy; a counter that the machine lacks leaves no entry."""
    rates = [_throughput_per_s(repetition, runs[repetition.index], batch_size) for repetition in selection.used]
    used = [on_unit(repetition, unit) for repetition in selection.used]
    known = [rate for rate in rates if rate is not None]
    found = single_estimates("throughput_per_s", known, "runs", full=True, is_stopped=is_stopped)
    for metric, reading in _READINGS.items():
        values = [value for repetition in used if (value := reading(repetition)) is not None]
        found |= single_estimates(metric, values, "runs", full=False, is_stopped=is_stopped)
    return found


def on_unit(repetition: Repetition, unit: str | None) -> Repetition:
    """Return it with the joules of its compute unit alone; where that may be any GPU or is not known, with all that
    may be its own. Only NVIDIA's cards have a counter of their own."""
    kind = None if unit is None else unit_number(unit)[0]
    if kind is None or kind in _ON_ANY_CARD:
        return _without_other_cards(repetition)
    return _on_own_card(repetition) if kind in _ON_NVIDIA else _on_processor(repetition)


def _on_processor(repetition: Repetition) -> Repetition:
    """Return it without what an NVIDIA card did beside it: an idle card's joules are not those of another unit."""
    energy = {name: joules for name, joules in repetition.energy_j.items() if not name.startswith("gpu")}
    return repetition.model_copy(update={"energy_j": energy, "vram_peak_mib": None})


def _on_own_card(repetition: Repetition) -> Repetition:
    """Return it with the joules of the job's own card alone; with several cards and none known, without any.

    Where no card has a counter, as where the GPU is a part of the processor, those of the processor stay.
    """
    known = _without_other_cards(repetition)
    cards = {name: joules for name, joules in known.energy_j.items() if name.startswith("gpu")}
    return known.model_copy(update={"energy_j": cards}) if cards else known


def _without_other_cards(repetition: Repetition) -> Repetition:
    """Return it without the joules of cards that are not the job's; with several cards and none known, without any."""
    cards = [name for name in repetition.energy_j if name.startswith("gpu")]
    own = repetition.gpu.card if repetition.gpu is not None else ""
    if not own and len(cards) < 2:
        return repetition
    energy = {name: joules for name, joules in repetition.energy_j.items() if name == own or name not in cards}
    return repetition.model_copy(update={"energy_j": energy if own in energy else {}})


def energy_j(repetition: Repetition) -> float | None:
    """Return the energy of the measured phase, each joule counted once; None without a counter.

    Processor counters are nested: the cores lie inside the package, and the platform's own counter holds them all.
    None also for a phase so short that the counters, some of which step ten times a second, cannot resolve it.
    """
    phase = _measure(repetition)
    if phase.end_ns - phase.begin_ns < _SHORTEST_FOR_ENERGY_NS:
        return None
    domains = {name.lower(): joules for name, joules in repetition.energy_j.items()}
    has_package = any("package" in name for name in domains)
    nested = {name for name in domains if "core" in name} if has_package else set()
    platform = {name for name in domains if "psys" in name} if has_package else set()
    counted = [joules for name, joules in domains.items() if name not in nested | platform]
    return sum(counted) if counted else None


def _throughput_per_s(repetition: Repetition, run: MeasuredRun, batch_size: int) -> float | None:
    """Return items by wall time: of a device while it worked back to back, else of the measured window."""
    if (sustained := repetition.phases.get("sustained")) is not None and sustained.end_ns > sustained.begin_ns:
        return sustained.count * batch_size / ((sustained.end_ns - sustained.begin_ns) / _NS_PER_S)
    return run.count * batch_size / (run.window_ns / _NS_PER_S) if run.window_ns > 0 else None


def _measure(repetition: Repetition) -> Phase:
    return repetition.phases.get("measure", _NO_PHASE)


def _cpu_ms(repetition: Repetition) -> float | None:
    phase = _measure(repetition)
    return phase.cpu_ns / phase.count / NS_PER_MS if phase.count else None


def _energy_each_j(repetition: Repetition) -> float | None:
    if repetition.gpu is not None:
        power, each_s = power_w(repetition), sustained_s(repetition)
        return power * each_s if power is not None and each_s is not None else None
    energy, count = energy_j(repetition), _measure(repetition).count
    return energy / count if energy is not None and count else None


def power_w(repetition: Repetition) -> float | None:
    """Return the mean power of a device while it worked back to back, else of the measured phase; None if unknown.

    Language models have no phase of work back to back: all of what they do is measured.
    """
    gpu = repetition.gpu
    if gpu is not None and (gpu.energy_j is not None or "sustained" in repetition.phases):
        return gpu.energy_j / gpu.energy_window_s if gpu.energy_j is not None and gpu.energy_window_s else None
    energy, phase = energy_j(_without_other_cards(repetition)), _measure(repetition)
    window_ns = phase.end_ns - phase.begin_ns
    if energy is None or window_ns <= 0 or (gpu is not None and window_ns < _SHORTEST_FOR_GPU_ENERGY_NS):
        return None
    return energy / (window_ns / _NS_PER_S)


def sustained_s(repetition: Repetition) -> float | None:
    """Return the time of one inference where they follow each other without waiting; None without such a phase."""
    phase = repetition.phases.get("sustained", _NO_PHASE)
    return (phase.end_ns - phase.begin_ns) / phase.count / _NS_PER_S if phase.count else None


def _memory_mib(repetition: Repetition) -> float | None:
    peak_kib, baseline_kib = _measure(repetition).rss_peak_kib, repetition.baseline_rss_kib
    return None if peak_kib is None or baseline_kib is None else (peak_kib - baseline_kib) / _KIB_PER_MIB


def _mib(kib: int | None) -> float | None:
    return None if kib is None else kib / _KIB_PER_MIB


_READINGS: dict[str, Reading] = {
    "inference_cpu_ms": _cpu_ms,
    "memory_mib": _memory_mib,
    "rss_baseline_mib": lambda repetition: _mib(repetition.baseline_rss_kib),
    "rss_load_peak_mib": lambda repetition: _mib(repetition.phases.get("load", _NO_PHASE).rss_peak_kib),
    "rss_peak_mib": lambda repetition: _mib(_measure(repetition).rss_peak_kib),
    "rss_anon_mib": lambda repetition: _mib(_measure(repetition).rss_anon_kib),
    "rss_file_mib": lambda repetition: _mib(_measure(repetition).rss_file_kib),
    "vram_peak_mib": lambda repetition: repetition.vram_peak_mib,
    "energy_j": _energy_each_j,
    "power_w": power_w,
}
