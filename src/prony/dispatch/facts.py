"""Collect the flat facts about a device that `place.where` asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prony.model.agent import Fact
from prony.model.device import AbilityReport, Cpu, Device, EngineReport, Gpu, Hardware, Software
from prony.ports.workload import find_kind, kind_names

Pairs = Iterator[tuple[str, Fact | None]]

# Other words for the same thing: each is a value of the fact, so that any of them fits.
_ALSO: Mapping[str, tuple[str, ...]] = {
    "darwin": ("macos", "darwin"),
    "x86_64": ("x86_64", "amd64"),
    "amd64": ("x86_64", "amd64"),
    "aarch64": ("aarch64", "arm64"),
    "arm64": ("aarch64", "arm64"),
    "genuineintel": ("GenuineIntel", "intel"),
    "authenticamd": ("AuthenticAMD", "amd"),
}
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*\S*")
# How far one may look into what is measured, the farthest first.
_ACCESS = ("white", "gray", "black")
# What an engine says of a unit without being a precision: its own choice, and that there is nothing to compute.
_NO_PRECISION = ("default", "none")
# The first of several units of one kind is meant where no number is given.
_FIRST = re.compile(r"(.+)[.-]0")


def facts_of(
    device: Device,
    engines: Sequence[EngineReport],
    *,
    abilities: Sequence[AbilityReport] = (),
    labels: Mapping[str, str],
    cached_models: Sequence[str],
    policy: Mapping[str, Fact],
) -> dict[str, Fact]:
    """Return every fact that is known; one that is not is absent.

    `policy` is what the device's owner says: which `schemes` and `kinds` are allowed, and of a stand-in its `target`.
    It has also the cards that engines can use as `gpu.uuid`: a device has only their digests.
    """
    ready = [report for report in engines if report.state == "ready"]
    pairs = (
        *_system(device),
        *_cpu(device.hardware.cpu),
        ("memory_gib", _memory_gib(device.hardware)),
        *_gpus(device.hardware.gpus),
        *_engines(ready),
        *_abilities(abilities),
        ("access", _access(policy.get("kinds"), [report.name for report in ready], abilities)),
        ("model", tuple(cached_models)),
        *((name, policy.get(name)) for name in ("schemes", "kinds", "gpu.uuid", "target", "target.kind")),
    )
    known = {name: value for name, value in pairs if value is not None and value not in ("", ())}
    return known | {f"label.{key}": value for key, value in labels.items()}


def _system(device: Device) -> Pairs:
    software: Software = device.software
    yield "os", _also(software.os.lower())
    yield "os.version", _with_version(software.os_version)
    yield "os.kernel", software.kernel
    yield "arch", _also(device.hardware.cpu.architecture.lower())
    yield "machine", device.hardware.machine
    yield "virtualization", device.hardware.virtualization
    yield "device", device.name
    yield "hardware_id", device.hardware_id
    yield "software_id", device.software_id
    yield "python", _with_version(software.python)
    yield "prony", software.prony
    yield from ((f"package.{name}", version) for name, version in software.packages.items())


def _cpu(cpu: Cpu) -> Pairs:
    yield "cpu.model", cpu.model
    yield "cpu.vendor", _also(cpu.vendor or "")
    yield "cpu.cores", cpu.physical_cores or cpu.logical_cores
    yield "cpu.threads", cpu.logical_cores
    yield "cpu.allowed", cpu.usable_cores
    yield "cpu.flags", cpu.flags


def _memory_gib(hardware: Hardware) -> float | None:
    """Return what is fitted, or else what the kernel counts, which is a little less; a limit is exact."""
    fitted = hardware.memory_installed_mib
    if fitted is None and hardware.memory_mib is None:
        return None
    here = fitted / 1024 if fitted is not None else float(round((hardware.memory_mib or 0) / 1024))
    limit = hardware.memory_limit_mib
    return round(here if limit is None else min(here, limit / 1024), 2)


def _gpus(gpus: Sequence[Gpu]) -> Pairs:
    yield "gpu", _several(gpu.name for gpu in gpus)
    yield "gpu.vendor", _several(gpu.vendor for gpu in gpus)
    yield "gpu.count", len(gpus)
    # A driver keeps some for itself: a card that is sold with 80 GiB shows 79.6.
    yield "gpu.memory_gib", _several(round(gpu.memory_mib / 1024) for gpu in gpus if gpu.memory_mib)
    yield "gpu.compute_capability", _several(gpu.compute_capability for gpu in gpus if gpu.compute_capability)
    yield "gpu.precision", _several(precision for gpu in gpus for precision in gpu.precisions)
    yield "gpu.driver", _several(word for gpu in gpus for word in _with_version(gpu.driver))


def _engines(ready: Sequence[EngineReport]) -> Pairs:
    yield "engine", _several(report.name for report in ready)
    yield "unit", _several(name for report in ready for name in _precisions(report))
    every = [words for report in ready for words in _precisions(report).values()]
    yield "precision", _several(word for words in every for word in words)
    for report in ready:
        by_unit = _precisions(report)
        yield f"engine.{report.name}", report.version or "unknown"
        yield f"engine.{report.name}.unit", tuple(by_unit)
        yield f"engine.{report.name}.format", report.formats
        yield f"engine.{report.name}.precision", _several(word for words in by_unit.values() for word in words)
        yield from ((f"engine.{report.name}.precision.{unit}", words) for unit, words in by_unit.items())


def _abilities(abilities: Sequence[AbilityReport]) -> Pairs:
    ready = [one for one in abilities if one.state == "ready"]
    for kind in dict.fromkeys(one.kind for one in ready):
        yield kind, _several(one.name for one in ready if one.kind == kind)
    for one in ready:
        if one.kind != "probe":
            yield f"{one.kind}.{one.name}", one.version or "unknown"
    yield from ((f"service.{one.name}.means", one.means) for one in abilities if one.kind == "service")


def _access(kinds: Fact | None, engines: Sequence[str], abilities: Sequence[AbilityReport]) -> tuple[str, ...]:
    """Return how far this device looks into what it measures: as far as its owner allows and its programs reach."""
    allowed = (kinds,) if isinstance(kinds, str) else kinds if isinstance(kinds, tuple) else ()
    known = [find_kind(name) for name in kind_names() if name in allowed]
    found = {word for kind in known for word in kind.prepare.access(engines, abilities)}
    return tuple(word for word in _ACCESS if word in found)


def _precisions(report: EngineReport) -> dict[str, tuple[str, ...]]:
    """Return the precisions of each unit by all names that the engine knows it by."""
    found: dict[str, tuple[str, ...]] = {}
    for unit in report.units:
        words = tuple(word for word in unit.precisions if word not in _NO_PRECISION)
        first = _FIRST.fullmatch(unit.unit)
        found |= {unit.unit: words} | ({first[1]: words} if first else {})
    return found


def _several(values: Iterable[str | float]) -> tuple[str | float, ...]:
    return tuple(dict.fromkeys(values))


def _also(word: str) -> tuple[str, ...]:
    return _ALSO.get(word.lower(), (word,) if word else ())


def _with_version(text: str | None) -> tuple[str, ...]:
    """Return a name as it is, and the version that stands in it."""
    found = _VERSION.search(text or "")
    return _words(text, found[0] if found else None)


def _words(*texts: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))
