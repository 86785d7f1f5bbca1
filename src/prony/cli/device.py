"""Print a device, its compute units, and what it can do besides running engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prony.cli.output import print_columns, print_text, terminal
from prony.model.agent import Fact
from prony.model.device import AbilityReport, Condition, Device, EngineUnit, Gpu
from prony.model.device_history import DeviceHistory, RecentReadings
from prony.model.gpu_detection import DetectedGpu, GpuDetection, ProductTrial
from prony.ports import plugins
from prony.ports.agent_link import AgentLink
from prony.report.escaping import one_line

_MARKS = {"pass": "[green]●[/green]", "warn": "[yellow]▲[/yellow]", "block": "[red]✖[/red]", "unknown": "[dim]?[/dim]"}
_WORST_FIRST = ("block", "warn", "unknown", "pass")


def show_device(device: Device, units: Sequence[EngineUnit], home: str) -> None:
    pairs = [*_hardware(device), *_software(device), ("home", home)]
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print_text(f"{name:<{width}}  {value}")
    print_text("\nAvailable Compute Units:")
    links: list[AgentLink] = list(plugins.create_all(plugins.AGENT_LINKS).values())
    for unit in units:
        known_as = "".join(f"  ({named})" for link in links if (named := link.describe_unit(unit)))
        print_text(f"- {unit.engine} on {unit.unit}: {', '.join(unit.precisions)}{known_as}")


def show_detection(detection: GpuDetection) -> None:
    """Print what each layer saw, each card with the layer behind each fact, and what they disagree about."""
    print_text("\nGPUs, as each tool reports them:")
    for layer in detection.layers:
        seen = f"{len(layer.cards)} card{'' if len(layer.cards) == 1 else 's'}" if layer.cards else layer.state
        note = f": {one_line(layer.note)}" if layer.note else ""
        print_text(f"- {layer.layer}: {seen}{note}")
    for card in detection.cards:
        for line in _card_lines(card):
            print_text(line)
    if detection.cpu_trials:
        print_text(f"\nproducts on the CPU: {_trials(detection.cpu_trials)}")


def _card_lines(card: DetectedGpu) -> Iterator[str]:
    facts = card.facts
    yield ""
    yield f"{one_line(str(facts.get('name', 'GPU')))}  (reported by {', '.join(card.layers)})"
    if "uuid" in facts:
        yield f"  unit           cuda:{one_line(str(facts['uuid']))[:12]}"
    shown = {name: value for name, value in facts.items() if name not in ("name", "uuid", "device")}
    for name, value in shown.items():
        layers = ", ".join(card.seen_by.get(name, {}))
        yield f"  {name.replace('_', ' '):<20} {one_line(str(value)):<24} {layers}"
    if card.tensor_generation is not None:
        has = " ".join(card.tensor_formats) or "none"
        generation = f"generation {card.tensor_generation}" if card.tensor_generation else "none"
        yield f"  {'tensor cores':<20} {generation}, by its compute capability: {has}"
    if card.trials:
        yield f"  {'products':<20} {_trials(card.trials)}"
    yield from (f"  disagreement: {one_line(text)}" for text in card.disagreements)
    yield from (f"  note: {one_line(text)}" for text in card.notes)


def _trials(trials: Sequence[ProductTrial]) -> str:
    good = " ".join(one.format for one in trials if one.worked) or "none"
    bad = "; ".join(f"{one.format}: {one_line(one.text)}" for one in trials if not one.worked)
    return f"{good} computed" + (f"; not {bad}" if bad else "")


def _hardware(device: Device) -> Iterator[tuple[str, str]]:
    cpu, hardware = device.hardware.cpu, device.hardware
    yield "device", device.name
    yield "fingerprint", f"hardware {device.hardware_id}, software {device.software_id}"
    yield "cpu", f"{cpu.model or 'unknown'} ({cpu.architecture})"
    yield "cores", _cores(device)
    yield "flags", " ".join(cpu.flags) or "none that matter"
    limit = f", limited to {hardware.memory_limit_mib} MiB" if hardware.memory_limit_mib else ""
    yield "memory", f"{(hardware.memory_mib or 0) / 1024:.1f} GiB{limit}"
    for gpu in hardware.gpus:
        yield f"gpu {gpu.index}", _gpu(gpu)
    if not hardware.gpus:
        yield "gpu", "none found"
    yield "virtual", hardware.virtualization or "none detected"


def _cores(device: Device) -> str:
    cpu = device.hardware.cpu
    physical = f", {cpu.physical_cores} physical" if cpu.physical_cores else ""
    quota = f", quota {cpu.quota_cores:g}" if cpu.quota_cores else ""
    return f"{cpu.logical_cores} logical{physical}, {cpu.allowed_cores} allowed{quota}"


def _gpu(gpu: Gpu) -> str:
    memory = f", {gpu.memory_mib / 1024:.0f} GiB" if gpu.memory_mib else ""
    return f"{gpu.name}{memory}, {' '.join(gpu.precisions)}"


def _software(device: Device) -> Iterator[tuple[str, str]]:
    software = device.software
    yield "system", f"{software.os} {software.os_version or ''}, kernel {software.kernel}"
    yield "python", software.python
    yield "packages", ", ".join(f"{name} {version}" for name, version in software.packages.items()) or "none"
    yield "prony", software.prony


_HEADINGS = ("KIND", "NAME", "READY", "VERSION", "MEANS", "WHY NOT")


def show_abilities(abilities: Sequence[AbilityReport]) -> None:
    """Print services, container engines, launchers and probes, there or not."""
    print_columns(_HEADINGS, [_cells(one) for one in abilities])


def _cells(one: AbilityReport) -> tuple[str, ...]:
    is_ready = "yes" if one.state == "ready" else "no"
    words = (one.kind, one.name, is_ready, one.version or "-", ", ".join(one.means) or "-", one.reason or "-")
    return tuple(map(one_line, words))


def show_facts(facts: Mapping[str, Fact]) -> None:
    """Print each fact with its values."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print_text(one_line(f"{name:<{width}}  {_values(value)}") if width else "")


def _values(value: Fact) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def show_conditions(conditions: Sequence[Condition]) -> None:
    """Print what would disturb a measurement, the worst first, each with what to do about it."""
    from rich.markup import escape

    width = max((len(one.title) for one in conditions), default=0)
    console = terminal()
    for condition in sorted(conditions, key=lambda item: _WORST_FIRST.index(item.status)):
        line = f"{_MARKS[condition.status]}  {escape(f'{condition.title:<{width}}')}  {escape(condition.value)}"
        hint = f"\n   [dim]{escape(condition.hint)}[/dim]" if condition.hint and condition.status != "pass" else ""
        # The terminal wraps these lines, so that a command can be copied whole.
        console.print(line + hint, highlight=False, soft_wrap=True)


def show_device_now(readings: RecentReadings, history: DeviceHistory) -> None:
    """Print the newest value of every reading, and what the newest result found that would disturb a measurement."""
    if readings.at:
        print_text(f"\nRead at {readings.at[-1]:%Y-%m-%d %H:%M:%S} UTC:")
        width = max((len(line.title) for line in readings.lines), default=0)
        for line in readings.lines:
            value = line.values[-1]
            print_text(one_line(f"{line.title:<{width}}  {'-' if value is None else f'{value:.4g} {line.unit}'}"))
    if history.checked_at is not None:
        print_text(f"\nWhat would disturb a measurement, as found at {history.checked_at:%Y-%m-%d %H:%M} UTC:")
        show_conditions(history.conditions)
