"""Every fact of a device that `place.where` can ask about: its name, how it compares and what it means."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal, NamedTuple

# How the values of a fact compare: as text, as numbers, as versions (1.9 < 1.18), or as whatever both sides look like.
Comparing = Literal["text", "number", "version", "either"]


class Known(NamedTuple):
    comparing: Comparing
    meaning: str


FACTS: Mapping[str, Known] = {
    "os": Known("text", "`linux`, `macos` (or `darwin`) or `windows`"),
    "os.version": Known("version", "the system's full name, and the version in it: `Ubuntu 24.04.1 LTS` and `24.04.1`"),
    "os.kernel": Known("version", "the kernel's release"),
    "arch": Known("text", "`x86_64` and `amd64` are one, and so are `aarch64` and `arm64`"),
    "machine": Known("text", "what the machine is sold as"),
    "virtualization": Known("text", "the hypervisor, or `none`"),
    "device": Known("text", "the device's name"),
    "hardware_id": Known("text", "the fingerprint of the hardware"),
    "software_id": Known("text", "the fingerprint of the software"),
    "cpu.model": Known("text", "the processor's name"),
    "cpu.vendor": Known("text", "as the processor says it, and `intel` or `amd` for those two"),
    "cpu.cores": Known("number", "physical cores; the logical ones where the system does not tell"),
    "cpu.threads": Known("number", "logical cores"),
    "cpu.allowed": Known("number", "logical cores that may be used here, a quota counted in"),
    "cpu.flags": Known("text", "instruction sets that matter to engines: `avx512f`, `asimd`, ..."),
    "memory_gib": Known("number", "memory that is fitted, or less where a limit is set"),
    "gpu": Known("text", "each GPU's name"),
    "gpu.vendor": Known("text", "`nvidia`, `amd`, `intel`, `apple`, ..."),
    "gpu.count": Known("number", "how many GPUs there are; 0 without any"),
    "gpu.memory_gib": Known("number", "each GPU's own memory, to the nearest whole GiB"),
    "gpu.compute_capability": Known("version", "NVIDIA's `8.9`, AMD's `gfx942`"),
    "gpu.precision": Known("text", "number formats that a GPU computes in, whatever engine is installed"),
    "gpu.driver": Known("version", "the version of each GPU's driver"),
    "engine": Known("text", "engines that are ready"),
    "unit": Known("text", "compute units of all engines that are ready: `cpu`, `cuda`, ..."),
    "precision": Known("text", "precisions of all engines that are ready: `fp32`, `bf16`, ..."),
    "service": Known("text", "services that can be started without more than the recipe's word: `redis`, `vllm`, ..."),
    "container": Known("text", "container engines that work: `podman`, `docker`, `apptainer`, `singularity`"),
    "launcher": Known("text", "launchers of scripts: `torchrun`, `mpirun`, `srun`"),
    "access": Known("text", "`white` (a model on an engine), `gray` (a service started here), `black` (an endpoint)"),
    "probe": Known("text", "what is monitored beside a run: `host`, `nvidia`, `rapl`"),
    "model": Known("text", "models that are there already: `zoo:NAME` or `sha256:...`"),
    "schemes": Known("text", "where models may come from: `zoo`, `https`, `file`, ..."),
    "kinds": Known("text", "kinds of workload that the device's owner allows"),
    "python": Known("version", "the interpreter's version, and its name with it: `CPython 3.12.3`"),
    "prony": Known("version", "Prony's version"),
}

# Families: the word after the dot is anybody's.
FAMILIES: Mapping[str, Known] = {
    "label.KEY": Known("either", "a label that the device's owner gave"),
    "engine.NAME": Known("version", "the version of an engine that is ready"),
    "engine.NAME.unit": Known("text", "its compute units"),
    "engine.NAME.precision": Known("text", "its precisions on any unit"),
    "engine.NAME.precision.UNIT": Known("text", "its precisions on that unit"),
    "engine.NAME.format": Known("text", "the endings of the model files that it loads: `.onnx`"),
    "service.NAME": Known("version", "the version of a service that can be started; `unknown` where asking takes long"),
    "service.NAME.means": Known("text", "how it can be started: `program`, `package`, `image`"),
    "container.NAME": Known("version", "the version of a container engine"),
    "launcher.NAME": Known("version", "the version of a launcher; of torchrun, torch's"),
    "package.NAME": Known("version", "the version of a Python package that changes numbers: `numpy`, `torch`, ..."),
}
GROUPS = sorted({name.partition(".")[0] for name in (*FACTS, *FAMILIES) if "." in name})
_OPEN: Mapping[str, Comparing] = {
    "label": "either",
    **dict.fromkeys(("engine", "service", "container", "launcher", "package"), "version"),
}
_OF_ENGINE = ("unit", "precision", "format")
_OF_SERVICE = ("means",)


def comparing(name: str) -> Comparing | None:
    """Return how the values of a fact compare, or None where no fact has this name."""
    if name in FACTS:
        return FACTS[name].comparing
    group, _, rest = name.partition(".")
    word, _, part = rest.partition(".")
    if not rest or not word:
        return None
    if group == "engine" and part:
        return "text" if part in _OF_ENGINE or part.removeprefix("precision.") not in ("", part) else None
    if group == "service" and part:
        return "text" if part in _OF_SERVICE else None
    return _OPEN.get(group)


def advice(name: str) -> str:
    """Return which fact was most likely meant by a name that none has."""
    inside = [known for known in (*FACTS, *FAMILIES) if known.startswith(f"{name}.")]
    if inside:
        return f"known here: {', '.join(inside)}"
    near = difflib.get_close_matches(name, [*FACTS, *_relatives(name)], n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join((*FACTS, *FAMILIES))}"


def _relatives(name: str) -> list[str]:
    """Return names of the families with what stands behind the first dot, so that a slip before it is understood."""
    _, _, rest = name.partition(".")
    if not rest:
        return []
    name, _, part = rest.partition(".")
    if part:
        known = [f"engine.{name}.{word}" for word in _OF_ENGINE] + [f"service.{name}.{word}" for word in _OF_SERVICE]
        return [f"label.{rest}", *known]
    return [f"{group}.{rest}" for group in _OPEN]
