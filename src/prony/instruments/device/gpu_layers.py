"""Join what several layers say of the same GPUs, and name what they disagree about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from prony.model.gpu_detection import DetectedGpu, FactValue, GpuDetection, GpuFields, LayerAnswer, ProductTrial

# Compute capability -> architecture, generation of tensor cores (0: none), and what these multiply.
_FP16 = ("fp16",)
_TURING = ("fp16", "int4", "int8")
_AMPERE = ("bf16", "fp16", "int4", "int8", "tf32")
_ADA = ("bf16", "fp16", "fp8", "int4", "int8", "tf32")
_HOPPER = ("bf16", "fp16", "fp64", "fp8", "int8", "tf32")
_BLACKWELL = ("bf16", "fp16", "fp4", "fp6", "fp64", "fp8", "int8", "tf32")
_SMALL_BLACKWELL = ("bf16", "fp16", "fp4", "fp6", "fp8", "int8", "tf32")
CAPABILITIES: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "6.0": ("Pascal", 0, ()),
    "6.1": ("Pascal", 0, ()),
    "6.2": ("Pascal", 0, ()),
    "7.0": ("Volta", 1, _FP16),
    "7.2": ("Volta", 1, ("fp16", "int8")),
    "7.5": ("Turing", 2, _TURING),
    "8.0": ("Ampere", 3, (*_AMPERE, "fp64")),
    "8.6": ("Ampere", 3, _AMPERE),
    "8.7": ("Ampere", 3, _AMPERE),
    "8.9": ("Ada Lovelace", 4, _ADA),
    "9.0": ("Hopper", 4, _HOPPER),
    "10.0": ("Blackwell", 5, _BLACKWELL),
    "10.3": ("Blackwell", 5, _BLACKWELL),
    "11.0": ("Blackwell", 5, _BLACKWELL),
    "12.0": ("Blackwell", 5, _SMALL_BLACKWELL),
    "12.1": ("Blackwell", 5, _SMALL_BLACKWELL),
}
TABLE = "table"  # where a fact comes from this table, and no layer tells it
# Turing cards that were sold without tensor cores, at the same compute capability.
_WITHOUT_TENSOR_CORES = re.compile(r"\bGTX 16\d\d|\bMX4\d\d|\bT[456]00\b|\bT1000\b")
# What two layers must agree about; clocks, link and power change by themselves. A share is the tolerance.
_AGREED: dict[str, float] = {
    "name": 0.0,
    "compute_capability": 0.0,
    "architecture": 0.0,
    "multiprocessors": 0.0,
    "memory_mib": 0.03,  # some count what the driver keeps for itself
    "memory_bus_bits": 0.0,
    "l2_mib": 0.0,
    "driver": 0.0,
    "ecc": 0.0,
    "mig": 0.0,
    "persistence": 0.0,
    "compute_mode": 0.0,
    "link_width_max": 0.0,
}


def join_layers(answers: Sequence[LayerAnswer]) -> GpuDetection:
    """Return every card once, by UUID, else by PCI address, else by name and order; the first layer's word counts."""
    groups: list[dict[str, GpuFields]] = []
    for answer in answers:
        for card in answer.cards:
            group = next((one for one in groups if answer.layer not in one and _is_same(one, card)), None)
            if group is None:
                groups.append({answer.layer: card})
            else:
                group[answer.layer] = card
    return GpuDetection(cards=tuple(_join(group, answers) for group in groups), layers=tuple(answers))


def _is_same(group: Mapping[str, GpuFields], card: GpuFields) -> bool:
    for key in ("uuid", "pci"):
        known = {_plain(one[key]) for one in group.values() if key in one}
        if known and key in card:
            return _plain(card[key]) in known
    return any(one.get("name") == card.get("name") for one in group.values())


def _plain(value: FactValue) -> str:
    return str(value).strip().casefold()


def _join(group: Mapping[str, GpuFields], answers: Sequence[LayerAnswer]) -> DetectedGpu:
    names = dict.fromkeys(name for one in group.values() for name in one)
    told = {name: {layer: one[name] for layer, one in group.items() if name in one} for name in names}
    facts = {name: next(iter(values.values())) for name, values in told.items()}
    known = CAPABILITIES.get(str(facts.get("compute_capability", "")))
    architecture, generation, formats = known or ("", None, ())
    if generation and _WITHOUT_TENSOR_CORES.search(str(facts.get("name", ""))):
        generation, formats = 0, ()
    if architecture and "architecture" not in facts:
        facts["architecture"] = architecture
        told["architecture"] = {TABLE: architecture}
    return DetectedGpu(
        facts=facts, layers=tuple(group),
        seen_by=told,
        disagreements=tuple(_disagreements(told)),
        tensor_generation=generation, tensor_formats=tuple(sorted(formats)),
        notes=tuple(_explain_absence(group, facts, answers)),
    )  # fmt: skip


def _disagreements(told: Mapping[str, Mapping[str, FactValue]]) -> Iterator[str]:
    for name, tolerance in _AGREED.items():
        values = told.get(name, {})
        first = next(iter(values.values()), None)
        if first is not None and not all(_agrees(first, one, tolerance) for one in values.values()):
            words = ", ".join(f"{layer} says {value}" for layer, value in values.items())
            yield f"{name}: {words}{_HINTS.get(name, '')}"


_HINTS = {"multiprocessors": "; a part of a GPU (MIG) or a limit of MPS can cause this"}


def _agrees(one: FactValue, other: FactValue, tolerance: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return _plain(one) == _plain(other)
    return abs(one - other) <= tolerance * max(abs(one), abs(other))


def _explain_absence(group: Mapping[str, GpuFields], facts: GpuFields, answers: Sequence[LayerAnswer]) -> Iterator[str]:
    """Say why an engine does not see a card that the driver shows, and what keeps one that it sees from working."""
    for answer in answers:
        if "runtime" not in answer.about and answer.layer != "torch":
            continue
        if answer.layer not in group:
            yield f"{answer.layer} does not see this GPU: {_why_unseen(answer, facts)}"
        elif (reason := _why_unusable(answer, facts)) is not None:
            yield f"{answer.layer}: {reason}"


def _why_unseen(answer: LayerAnswer, facts: GpuFields) -> str:
    if answer.state != "asked":
        return answer.note or "it did not answer"
    if not answer.about.get("runtime"):
        return "this build does not support GPUs; to get one that does: prony engines add torch-cuda"
    if "visible_devices" in answer.about:
        return f"CUDA_VISIBLE_DEVICES is {answer.about['visible_devices']!r}"
    if "cuda" in facts and _version(facts["cuda"]) < _version(answer.about["runtime"]):
        return f"the driver is for CUDA {facts['cuda']}, but the build is for CUDA {answer.about['runtime']}"
    return "the reason is unknown"


def _why_unusable(answer: LayerAnswer, facts: GpuFields) -> str | None:
    capability, built = str(facts.get("compute_capability", "")), str(answer.about.get("built_for", "")).split()
    wanted = f"sm_{capability.replace('.', '')}"
    if not capability or not built or wanted in built:
        return None
    # Code for a smaller number of the same generation runs too, and so does what is compiled when it is loaded.
    major = [name for name in built if re.fullmatch(rf"(sm|compute)_{capability.partition('.')[0]}\d", name)]
    return None if major or any(name.startswith("compute_") for name in built) else f"not built for {wanted}"


def _version(text: FactValue) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(text))[:2])


def add_trials(detection: GpuDetection, layer: str, trials: Mapping[str, tuple[ProductTrial, ...]]) -> GpuDetection:
    """Add products that an engine computed, by the UUID, or else the name, that it has for each card."""
    cards = []
    for card in detection.cards:
        keys = [str(card.facts[name]) for name in ("uuid", "name") if name in card.facts]
        found = next((trials[key] for key in keys if key in trials), ()) if layer in card.layers else ()
        cards.append(card.model_copy(update={"trials": card.trials + found}))
    changes = {"cards": tuple(cards), "cpu_trials": detection.cpu_trials + trials.get("cpu", ())}
    return detection.model_copy(update=changes)
