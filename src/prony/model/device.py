"""What a machine is: two hashes that say what may be compared, and the documents they were made from."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from prony.model.base import Noun
from prony.model.calibration import Calibration
from prony.model.git import Git


class Cpu(Noun):
    """`logical_cores` and `allowed_cores` are None where somebody else reported the device and did not say."""

    model: str | None = None
    vendor: str | None = None
    family: int | None = None
    model_number: int | None = None
    stepping: int | None = None
    architecture: str
    flags: tuple[str, ...] = ()
    physical_cores: int | None = None
    logical_cores: int | None = None
    performance_cores: int | None = None
    efficiency_cores: int | None = None
    allowed_cores: int | None = None
    quota_cores: float | None = None
    caches: dict[str, int] = {}
    numa_nodes: int | None = None
    max_mhz: float | None = None

    @property
    def usable_cores(self) -> float | None:
        """How many cores' worth of time a process may have: those allowed, or its quota where that is less."""
        if self.allowed_cores is None:
            return self.quota_cores
        return min(self.allowed_cores, self.quota_cores or self.allowed_cores)


class Gpu(Noun):
    """A GPU as its driver describes it; `uuid_hash` tells cards of one model apart."""

    index: int
    name: str
    vendor: str
    uuid_hash: str | None = None
    memory_mib: int | None = None
    compute_capability: str | None = None
    precisions: tuple[str, ...] = ()
    power_limit_w: float | None = None
    pcie_width: int | None = None
    driver: str | None = None
    runtime: str | None = None


class Hardware(Noun):
    """What may be compared as the same device; hashed into `hardware_id`."""

    cpu: Cpu
    memory_mib: int | None = None
    # What is fitted, where the system tells: the kernel's own count differs a little from version to version.
    memory_installed_mib: int | None = None
    memory_limit_mib: int | None = None
    gpus: tuple[Gpu, ...] = ()
    virtualization: str | None = None
    machine: str | None = None


class Software(Noun):
    """What runs on it; hashed into `software_id`."""

    os: str
    os_version: str | None = None
    kernel: str
    libc: str | None = None
    microcode: str | None = None
    mitigations: dict[str, str] = {}
    python: str
    prony: str
    gpu_driver: str | None = None
    packages: dict[str, str] = {}
    environment: dict[str, str] = {}


class Device(Noun):
    """A machine; its ids change where its parts or its programs do."""

    name: str
    hardware_id: str
    software_id: str
    hardware: Hardware
    software: Software


class Condition(Noun):
    """One pre-flight check: what was seen, and whether it would make a measurement noisy."""

    code: str
    title: str
    status: Literal["pass", "warn", "block", "unknown"]
    value: str
    hint: str = ""


class State(Noun):
    """How the machine was when a run began; never part of its identity."""

    taken_at: datetime
    values: dict[str, float | int | str | None] = {}
    conditions: tuple[Condition, ...] = ()


class EngineUnit(Noun):
    """One engine on one compute unit: an ability of the device. `seed_name` is its name in campaigns."""

    engine: str
    unit: str
    description: str
    precisions: tuple[str, ...] = ()
    seed_name: str | None = None


class EngineReport(Noun):
    """One engine as found on this machine, working or broken."""

    name: str
    python: str
    state: Literal["ready", "missing", "broken", "unsupported"]
    version: str | None = None
    import_ms: float | None = None
    formats: tuple[str, ...] = ()
    units: tuple[EngineUnit, ...] = ()
    details: dict[str, str] = {}
    reason: str = ""
    hint: str = ""


class AbilityReport(Noun):
    """One service, container engine, launcher or probe as found on this machine; `reason` says why it is not ready.

    `means` are the ways in which a service can be started here: `program` (on PATH), `package` (of a Python
    environment), `image` (a recipe names one, and a container engine runs it).
    """

    kind: Literal["service", "container", "launcher", "probe"]
    name: str
    state: Literal["ready", "missing", "broken"]
    version: str | None = None
    path: str = ""
    means: tuple[str, ...] = ()
    reason: str = ""


class Environment(Noun):
    """The contents of `environment.json`."""

    device: Device
    state: State
    clock: dict[str, float | int | str | bool]
    # Of the recipe, where it was submitted. Older results have that of the folder in which the runner was started.
    git: Git | None = None
    checksums: dict[str, str] = {}
    # The calibration that was valid when this was measured; older results have its id alone.
    calibration_id: str | None = None
    calibration: Calibration | None = None
    # What the owner of the machine says of it: an agent's labels, or PRONY_LABELS.
    labels: dict[str, str] = {}
