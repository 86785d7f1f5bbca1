"""Detect a Mac's hardware with sysctl and system_profiler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from prony.instruments import kernel
from prony.instruments.device import cpuinfo
from prony.model.device import Cpu, Gpu, Hardware

_KEYS = ("hw", "machdep.cpu", "kern.hv_vmm_present")


def read_hardware() -> Hardware:
    """Ask this Mac."""
    return hardware(sysctls(_output("sysctl", *_KEYS)), _output("system_profiler", "SPDisplaysDataType", "-json"))


def sysctls(text: str) -> dict[str, str]:
    """Return `key: value` lines as a dictionary."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def hardware(facts: Mapping[str, str], displays: str) -> Hardware:
    """Return the hardware from what sysctl and system_profiler said."""
    memory = kernel.integer(facts.get("hw.memsize")) or 0
    guest = kernel.integer(facts.get("kern.hv_vmm_present"))
    return Hardware(
        cpu=cpu(facts),
        memory_mib=memory // 2**20,
        memory_installed_mib=memory // 2**20 or None,
        gpus=gpus(displays),
        virtualization=None if guest is None else ("vm" if guest else "none"),
        machine=facts.get("hw.model"),
    )


def cpu(facts: Mapping[str, str]) -> Cpu:
    """Return the CPU. Level 0 of the performance levels is the strong cores, level 1 the efficient ones."""

    def number(key: str) -> int | None:
        return kernel.integer(facts.get(key))

    logical = number("hw.logicalcpu") or number("hw.ncpu") or 1
    brand = facts.get("machdep.cpu.brand_string")
    hybrid = (number("hw.nperflevels") or 1) > 1
    names = {flag for key, flag in cpuinfo.DARWIN.items() if facts.get(key) == "1"}
    hertz = number("hw.cpufrequency_max")
    return Cpu(
        model=brand,
        vendor=facts.get("machdep.cpu.vendor") or ("Apple" if (brand or "").startswith("Apple") else None),
        family=number("machdep.cpu.family") or number("hw.cpufamily"),
        model_number=number("machdep.cpu.model") or number("hw.cpusubfamily"),
        stepping=number("machdep.cpu.stepping"),
        architecture="arm64" if facts.get("hw.optional.arm64") == "1" else "x86_64",
        flags=cpuinfo.relevant(names | _x86_words(facts)),
        physical_cores=number("hw.physicalcpu"),
        logical_cores=logical,
        performance_cores=number("hw.perflevel0.physicalcpu") if hybrid else None,
        efficiency_cores=number("hw.perflevel1.physicalcpu") if hybrid else None,
        allowed_cores=logical,
        caches=_caches(facts),
        max_mhz=hertz / 1e6 if hertz else None,
    )


def gpus(displays: str) -> tuple[Gpu, ...]:
    """Return the GPUs in system_profiler's JSON; nothing where it said nothing."""
    try:
        listed = json.loads(displays).get("SPDisplaysDataType", []) if displays else []
    except json.JSONDecodeError:
        listed = []
    return tuple(_gpu(index, each) for index, each in enumerate(listed))


def _gpu(index: int, said: Mapping[str, str]) -> Gpu:
    vendor = said.get("spdisplays_vendor", "")
    name = next((known for known in ("apple", "amd", "intel", "nvidia") if known in vendor.lower()), vendor)
    metal = said.get("spdisplays_mtlgpufamilysupport")
    return Gpu(
        index=index,
        name=said.get("sppci_model", "GPU"),
        vendor=name or "unknown",
        memory_mib=_mib(said.get("spdisplays_vram")),
        compute_capability=metal.removeprefix("spdisplays_") if metal else None,
    )


def _mib(size: str | None) -> int | None:
    """Return `4 GB` or `1536 MB` in MiB; Apple's own GPUs share the memory and have none of theirs."""
    number, _, unit = (size or "").partition(" ")
    scale = {"GB": 1024, "MB": 1}.get(unit)
    return int(number) * scale if scale and number.isdecimal() else None


def _x86_words(facts: Mapping[str, str]) -> set[str]:
    keys = ("machdep.cpu.features", "machdep.cpu.leaf7_features")
    words = " ".join(facts.get(key, "") for key in keys).lower().split()
    return {{"avx1.0": "avx", "sse4.2": "sse4_2", "avx512vnni": "avx512_vnni"}.get(word, word) for word in words}


def _caches(facts: Mapping[str, str]) -> dict[str, int]:
    """Return the strong cores' caches in KiB."""
    found: dict[str, int] = {}
    for key, name in {"l1d": "L1d_kib", "l1i": "L1i_kib", "l2": "L2_kib", "l3": "L3_kib"}.items():
        size = kernel.integer(facts.get(f"hw.perflevel0.{key}cachesize") or facts.get(f"hw.{key}cachesize"))
        if size:
            found[name] = size // 1024
    return found


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
