"""The seam for engines: what a plug-in must do so that any model can be loaded, fed, timed and checked on it.

An engine plug-in is hosted by the engine's child, which may run under another interpreter where nothing is installed
but numpy and the engine itself. So this module and every engine plug-in import the standard library and numpy at
the top, and the vendor's package only inside `preload`, `probe` and `load`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

# Agents and servers read what engines are and never an array: numpy would be a tenth of an agent's start.
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
# The shape of an input whose number of axes the model file does not record.
UNKNOWN_RANK: tuple[str] = ("...",)


@dataclass(frozen=True)
class TensorSpec:
    """One input as the model declares it. `dtype` is numpy's name, or `str`, or an ONNX name that numpy lacks.

    A dimension is an int (fixed), a str (dynamic, by its name) or None (dynamic, unnamed). `below` bounds the values
    of an integer input where the model tells (rows of the embedding that it indexes), with `below_source` saying how.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]
    below: int | None = None
    below_source: str = ""
    # A size that the model itself suggests for its dynamic axes (metadata, presets): axis position -> (size, source).
    suggested: Mapping[int, tuple[int, str]] = field(default_factory=dict)


# How engines say that memory ran out without Python's own error for it.
_SHORTAGE = re.compile(
    r"bad[ _]alloc|out of memory|(not enough|insufficient) memory|(can ?not|can't|(failed|unable|cannot) to) allocate",
    re.IGNORECASE,
)
MEMORY_HINT = "use a smaller batch or model, or a machine with more memory"


def is_memory_shortage(message: str) -> bool:
    """Does an engine's message say that memory ran out?"""
    return _SHORTAGE.search(message) is not None


def shape_flag(name: str, shape: Sequence[int]) -> str:
    """Return a shape as a shell takes it for `prony bench`; one without axes is `scalar`."""
    sizes = "x".join(map(str, shape)) or "scalar"
    return f"--shape {shlex.quote(f'{name}={sizes}')}"


@dataclass(frozen=True)
class LoadOptions:
    """How to load: what the recipe asks for, already resolved to plain values."""

    unit: str
    threads: int
    precision: str = "default"  # default | fp32 | fp16 | bf16 | int8
    batch_size: int = 1
    # The shapes that will be fed, where they are known before loading (engines that compile for fixed shapes).
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    # Ask for per-node placement: slower, so never set in a repetition that is timed.
    profile: bool = False
    # Where each timed call finds its inputs and leaves its outputs: `device`, or `host` with a copy in every call.
    inputs_at: str = "device"
    outputs_at: str = "device"


@dataclass(frozen=True)
class Effect:
    """What the engine says it really does, asked after loading, never copied from the request."""

    device: str
    precision: str
    threads: int | None
    # Share of nodes by provider (0..1); empty where the engine does not tell.
    coverage: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    # Where the timed call leaves its outputs: `device`, or `pinned host`. None: on the host, in ordinary memory; on a
    # unit other than the CPU the call then counts the copies.
    outputs_at: str | None = None
    # `off` of an engine that can record gradients in a timed call and does not; None of one that never does.
    gradients: str | None = None


@dataclass(frozen=True)
class Unit:
    """A compute unit that this engine can use on this machine, now."""

    name: str  # cpu, cuda, tensorrt, directml, coreml-gpu, neural-engine, ...
    description: str
    precisions: tuple[str, ...]
    seed_name: str | None = None  # its name in campaigns of other programs, as "CPU (ONNX)"


@dataclass(frozen=True)
class EngineInfo:
    """What `probe` found, in a process of its own."""

    version: str
    units: Sequence[Unit]
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HostCopies:
    """Copies between the host and the device, each queued by its call; the buffers on the host are made once.

    `memory` says what the host's buffers are: `pinned` or `pageable`.
    """

    copy_in: Callable[[], Any]
    copy_out: Callable[[], Any]
    roundtrip: Callable[[], Any]  # inputs in, one inference, outputs out
    bytes_in: int
    bytes_out: int
    memory: str = "pinned"


@dataclass(frozen=True)
class DeviceMemory:
    """The device's memory by the engine's own allocator, in bytes: of the weights, and the highest since `reset`."""

    weights: int
    allocated_peak: int
    reserved_peak: int


@runtime_checkable
class TracksDeviceMemory(Protocol):
    """Something loaded on a device whose memory the engine's allocator counts."""

    def reset_memory_peak(self) -> None:
        """Forget the highest memory so far."""

    def device_memory(self) -> DeviceMemory | None:
        """Return what the engine's allocator holds; None where the engine does not tell."""


@runtime_checkable
class CardCall(Protocol):
    """A bound call on a card that the engine can name. `device_id` is the card's own name, as its driver tells it."""

    device_id: str

    def __call__(self) -> Any:
        """Run one inference to its end."""


@runtime_checkable
class DeviceCall(TracksDeviceMemory, Protocol):
    """A bound call on a device that works beside the host. Called plainly it launches, waits and returns the outputs.

    `device_id` is the card's own name, as its driver tells it; empty where it is not known.
    """

    device_id: str

    def __call__(self) -> Any:
        """Run one inference to its end."""

    def launch(self) -> Any:
        """Queue one inference and return what will hold its outputs, without waiting for them."""

    def wait(self) -> None:
        """Block until the device has done all that was queued."""

    def time_on_device(self) -> int | None:
        """Run one inference between two marks on the device; return the nanoseconds between them.

        Returns:
            None where the device cannot mark its time.
        """

    def host_copies(self) -> HostCopies:
        """Make the host's buffers and return how inputs and outputs are copied."""


@runtime_checkable
class CompiledCall(Protocol):
    """A bound call whose first run compiles or captures the model."""

    def stages(self) -> Mapping[str, tuple[int, int]]:
        """Return begin and end, in monotonic nanoseconds, of `compile` and `capture` as far as they were done."""

    def count_compilations(self) -> int:
        """Return how often the model was compiled in this process so far."""


class Session(Protocol):
    """A loaded model."""

    def signature(self) -> list[TensorSpec]:
        """Return every input that must be fed, in the model's order."""

    def effect(self) -> Effect:
        """Ask the engine what it does with this model."""

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:
        """Do all that may be done beforehand (conversion, copies to the device) and return the call to be timed.

        Args:
            inputs: An array for each name of `signature`.

        Returns:
            A call that takes nothing, blocks until the outputs are ready, and returns them in whatever form is
            cheapest; `outputs` makes arrays of them outside the timer. On a device that works beside the host it is a
            `DeviceCall`, whose outputs stay on the device unless the recipe asks for them on the host. A call that
            compiles the model when it first runs is a `CompiledCall` too.
        """

    def outputs(self, raw: Any) -> dict[str, Array]:
        """Turn what the bound call returned into named arrays."""


class CpuIndex(NamedTuple):
    """Where builds for the CPU alone are. The variable of the environment names another index, or, empty, none."""

    variable: str
    url: str


@runtime_checkable
class HasCpuBuilds(Protocol):
    """An engine whose usual package holds what a GPU needs, gigabytes of it, and which has a smaller one without."""

    cpu_index: ClassVar[CpuIndex]


class GpuBuild(NamedTuple):
    """Packages of an engine for GPUs, which `prony engines add NAME` installs instead of the usual ones.

    `systems` are names of `sys.platform`, `machines` of processors. `cuda` is the least version that the NVIDIA driver
    must be for, and empty where none is needed. `windows_index` is where the packages for Windows are, if elsewhere.
    `otherwise` says what to do where the build cannot work. A build with the name of its engine is the engine's usual
    one; it is not asked for where the user names other packages or an interpreter.
    """

    name: str
    units: tuple[str, ...]
    requirements: tuple[str, ...]
    systems: tuple[str, ...] = ("linux", "win32")
    machines: tuple[str, ...] = ("x86_64",)
    cuda: str = ""
    windows_index: str = ""
    otherwise: str = ""


@runtime_checkable
class HasGpuBuilds(Protocol):
    """An engine whose usual package reaches no GPU, or not every kind of them."""

    gpu_builds: ClassVar[tuple[GpuBuild, ...]]


def gpu_build_command(engine: Any, unit: str) -> str:
    """Return the command that adds the build of an engine which has this unit; empty where there is none."""
    kind = unit.partition(":")[0].partition("-")[0]
    builds = engine.gpu_builds if isinstance(engine, HasGpuBuilds) else ()
    return next((f"prony engines add {one.name}" for one in builds if kind in one.units), "")


@runtime_checkable
class SeesCards(Protocol):
    """An engine that tells of each GPU what it sees of it, for holding it against what the driver says."""

    def describe_cards(self, *, tries_products: bool) -> dict[str, Any]:
        """Look at the devices; runs in a child of its own.

        Args:
            tries_products: Multiply two small matrices on each device in each number format too.

        Returns:
            `about`: facts of the engine; `cards`: a dictionary of plain values for each GPU; `trials`: by the UUID or
            name of a card, and of `cpu`, a list of `format`, `worked` and `text`.
        """


@runtime_checkable
class HasCanary(Protocol):
    """An engine that can time fixed work on a device: how fast is it just now, and does it work for others too?"""

    def time_canary(self, unit: str) -> Mapping[str, Sequence[int]]:
        """Do the fixed work some milliseconds long and give back the memory that it took.

        Returns:
            The nanoseconds of one kernel after the other, with nothing between them, by `compute` and `memory`; empty
            where the device has no such work, or no room for it.
        """


@runtime_checkable
class FindsDevice(Protocol):
    """An engine whose devices may be used without a model."""

    def find_device(self, unit: str) -> tuple[str, str | None]:
        """Return what the vendor's package calls the device of a unit, and the card's own name; None of the CPU.

        Raises:
            CapacityError: The unit is not there, with the code `unit_unavailable`.
        """


@runtime_checkable
class NeedsSystem(Protocol):
    """An engine that works on some operating systems only."""

    def unsupported_reason(self) -> str | None:
        """Return why this engine cannot work on this operating system at all, or None. Imports nothing."""


def find_unsupported_reason(engine: Any) -> str | None:
    """Return why an engine cannot work on this operating system at all; None where it can."""
    return engine.unsupported_reason() if isinstance(engine, NeedsSystem) else None


@runtime_checkable
class Engine(Protocol):
    """An in-process model runtime."""

    name: ClassVar[str]
    formats: ClassVar[tuple[str, ...]]  # endings of the files it loads: (".onnx",)
    reference_formats: ClassVar[tuple[str, ...]]  # those of which it is the plainest reader: the reference
    requirements: ClassVar[tuple[str, ...]]  # what `prony engines add NAME` installs beside numpy
    extra: ClassVar[str]  # the extra of `pip install "prony[...]"`

    def preload(self) -> str:
        """Import the vendor's package and return its version. Must start no thread: the spawner forks after it."""

    def probe(self) -> EngineInfo:
        """Look for units. Runs in a child of its own, so it may initialise devices."""

    def load(self, path: str, options: LoadOptions) -> Session:
        """Load and compile a model.

        Args:
            path: The model's main file.
            options: The unit, precision and threads that the recipe asks for.

        Raises:
            CapacityError: The unit is not there, with the code `unit_unavailable`; there is no fallback.
        """
