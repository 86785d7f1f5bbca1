"""Engine for exported programs and TorchScript with PyTorch on the requested device."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError
from prony.plugins.engines.tensors import of_weights
from prony.plugins.engines.torch_calls import PreparedRun, TorchDeviceCall, TorchWork, card_id
from prony.plugins.engines.torch_canary import time_fixed_work
from prony.plugins.engines.torch_devices import describe_devices, try_products
from prony.plugins.engines.torch_options import TorchOptions, apply_torch_options, read_options
from prony.plugins.engines.torch_programs import Program, dtype_name, read_program
from prony.ports.engine import (
    Array,
    CpuIndex,
    Effect,
    EngineInfo,
    GpuBuild,
    LoadOptions,
    TensorSpec,
    Unit,
    gpu_build_command,
)
from prony.ports.unit_names import split_unit, unit_aliases

_CASTS = {"fp16": "float16", "bf16": "bfloat16"}
_LATE_IMPORTS = ("torch._dynamo", "torch.export.pt2_archive._package", "torch.export._unlift")


class Torch:
    """The CPU, and every CUDA, MPS or XPU device that this build of PyTorch sees."""

    name: ClassVar[str] = "torch"
    formats: ClassVar[tuple[str, ...]] = (".pt2", ".pt", ".ts", ".jit")
    reference_formats: ClassVar[tuple[str, ...]] = (".pt2", ".pt")
    requirements: ClassVar[tuple[str, ...]] = ("torch",)
    extra: ClassVar[str] = "torch"
    # On Linux the usual package is the one for CUDA; on Windows that lies in an index of its own.
    gpu_builds: ClassVar[tuple[GpuBuild, ...]] = (
        GpuBuild(
            "torch-cuda", ("cuda",), ("torch",), machines=("x86_64", "aarch64"), cuda="13.0",
            windows_index="https://download.pytorch.org/whl/cu130",
        ),
    )  # fmt: skip
    cpu_index: ClassVar[CpuIndex] = CpuIndex("PRONY_TORCH_CPU_INDEX", "https://download.pytorch.org/whl/cpu")

    def preload(self) -> str:
        # Cards are numbered as the driver and nvidia-smi number them, unless the user's environment says otherwise.
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        import torch

        # Reading an exported program drags in hundreds of modules by and by. They are the engine's import and not the
        # model's load; where another release calls them otherwise, the load pays for them and says so by its length.
        for name in _LATE_IMPORTS:
            with suppress(ModuleNotFoundError):
                importlib.import_module(name)
        return str(torch.__version__)

    def probe(self) -> EngineInfo:
        import torch

        details = {"cuda": str(torch.version.cuda), "cpu_capability": torch.backends.cpu.get_cpu_capability()}
        units = [
            Unit(name, _describe_device(torch, device), _precisions(torch, device)) for name, device in _units(torch)
        ]
        return EngineInfo(str(torch.__version__), units, details)

    def describe_cards(self, *, tries_products: bool) -> dict[str, Any]:
        import torch

        found = describe_devices(torch)
        places = {one.get("uuid") or one["name"]: one["device"] for one in found["cards"]}
        tried = places | {"cpu": "cpu"} if tries_products else {}
        return found | {"trials": {key: try_products(torch, device) for key, device in tried.items()}}

    def find_device(self, unit: str) -> tuple[str, str | None]:
        import torch

        device = _find(torch, unit)
        return device, card_id(torch, device) if device.startswith("cuda") else None

    def time_canary(self, unit: str) -> Mapping[str, Sequence[int]]:
        import torch

        device = _find(torch, unit)
        return time_fixed_work(torch, device) if device.startswith("cuda") else {}

    def load(self, path: str, options: LoadOptions) -> TorchSession:
        import torch

        device = _find(torch, options.unit)
        _check(options)
        chosen = read_options(options, device)
        apply_torch_options(torch, chosen)
        if device.startswith("cuda"):
            torch.cuda.set_device(device)
        torch.set_num_threads(options.threads)
        if torch.get_num_interop_threads() != 1:
            torch.set_num_interop_threads(1)
        if options.precision == "fp32":
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        program = read_program(torch, path, device)
        if options.precision in _CASTS:
            program.module.to(getattr(torch, _CASTS[options.precision]))
        _check_device(program, device)
        if chosen.channels_last:
            program.module.to(memory_format=torch.channels_last)
        return TorchSession(torch, program, device, options, chosen)


def _units(torch: Any) -> list[tuple[str, str]]:
    """Return (name, device) of everything that can be used now; one CUDA device needs no number."""
    found = [("cpu", "cpu")]
    for kind in ("cuda", "xpu"):
        backend = getattr(torch, kind, None)
        count = backend.device_count() if backend is not None and backend.is_available() else 0
        names = [kind] if count == 1 else [f"{kind}-{index}" for index in range(count)]
        found += [(name, f"{kind}:{index}") for index, name in enumerate(names)]
    if torch.backends.mps.is_available():
        found.append(("mps", "mps"))
    return found


def _find(torch: Any, unit: str) -> str:
    units = dict(_units(torch))
    if split_unit(unit)[1]:
        device = _find_card(torch, unit)
    else:
        device = next((units[one] for one in unit_aliases(unit) if one in units), None)
    if device is None:
        there = [*units, *(f"cuda:{uuid}" for uuid in _list_cards(torch).values() if ":" in unit)]
        raise CapacityError(
            f"PyTorch sees no unit {unit!r} on this machine",
            hint=f"available: {', '.join(there)}; this is the build {torch.__version__}{_advise_build(torch, unit)}",
            code="unit_unavailable",
        )
    return device


def _advise_build(torch: Any, unit: str) -> str:
    """Return what adds a build that has this kind of unit, where this one has no support for it at all."""
    command = gpu_build_command(Torch, unit)
    return f"; a build for CUDA: {command}" if command and not torch.version.cuda else ""


def _find_card(torch: Any, unit: str) -> str | None:
    """Return the device of a unit that names a card by its UUID or the beginning of it: `cuda:GPU-9292ab31`."""
    kind, _, wanted = unit.partition(":")
    if kind != "cuda" or not wanted:
        return None
    found = [
        device for device, uuid in _list_cards(torch).items() if uuid.startswith(f"GPU-{wanted.removeprefix('GPU-')}")
    ]
    return found[0] if len(found) == 1 else None


def _list_cards(torch: Any) -> dict[str, str]:
    """Return the UUID of every CUDA card, by its device."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return {f"cuda:{index}": card_id(torch, index) for index in range(count)}


def _check(options: LoadOptions) -> None:
    if options.precision == "int8":
        raise InputError(
            "torch cannot convert a model to int8 while loading",
            hint="quantize it before exporting, and use precision: default",
            code="precision_unavailable",
        )


def _check_device(program: Program, device: str) -> None:
    """Refuse a module that did not move as a whole."""
    kind = device.split(":", 1)[0]
    elsewhere = {tensor.device.type for tensor in _weights(program.module)} - {kind}
    if elsewhere:
        raise CapacityError(
            f"part of the model stayed on {', '.join(sorted(elsewhere))} instead of {device}",
            hint="export it without constants that name a device",
            code="unit_unavailable",
        )


def _weights(module: Any) -> list[Any]:
    return [*module.parameters(), *module.buffers()]


def _describe_device(torch: Any, device: str) -> str:
    kind = device.split(":", 1)[0]
    if kind in ("cuda", "xpu"):
        return str(getattr(torch, kind).get_device_name(device))
    return {"cpu": "CPU", "mps": "Apple GPU through Metal"}[kind]


def _precisions(torch: Any, device: str) -> tuple[str, ...]:
    no_bf16 = device.startswith("cuda") and not torch.cuda.is_bf16_supported()
    return ("default", "fp32", "fp16") + (() if no_bf16 else ("bf16",))


# Held for the life of this process: PyTorch leaves the mode when its guard is freed.
_inference_modes: list[Any] = []


def _enter_inference_mode(torch: Any) -> None:
    """Record no gradients from now on, as around a user's own loop: entering it costs 9 us at every call."""
    if not torch.is_inference_mode_enabled():
        mode = torch.inference_mode()
        mode.__enter__()
        _inference_modes.append(mode)


class TorchSession:
    """A module on its device."""

    def __init__(self, torch: Any, program: Program, device: str, options: LoadOptions, chosen: TorchOptions) -> None:
        self._torch = torch
        self._program = program
        self._device = device
        self._options = options
        self._chosen = chosen
        self._cast = getattr(torch, _CASTS[options.precision]) if options.precision in _CASTS else None

    def signature(self) -> list[TensorSpec]:
        return self._program.specs()

    def effect(self) -> Effect:
        torch = self._torch
        details = {"interop_threads": str(torch.get_num_interop_threads())} | self._chosen.details()
        if self._device.startswith("cuda"):
            details |= self._tf32() | {"cuda": str(torch.version.cuda), "cuda_device": self._device}
        return Effect(
            device=_describe_device(torch, self._device),
            precision=self._precision(),
            threads=torch.get_num_threads(),
            coverage={"cpu": 1.0} if self._device == "cpu" else {},
            details=details,
            outputs_at=None if self._device == "cpu" else self._describe_outputs(),
            gradients="off",
        )

    def _describe_outputs(self) -> str:
        return "device" if self._options.outputs_at == "device" else "pinned host"

    def _tf32(self) -> dict[str, str]:
        backends = self._torch.backends
        return {
            "matmul_allow_tf32": str(backends.cuda.matmul.allow_tf32),
            "cudnn_allow_tf32": str(backends.cudnn.allow_tf32),
            "float32_matmul_precision": self._torch.get_float32_matmul_precision(),
        }

    def _precision(self) -> str:
        counts: dict[str, int] = {}
        for tensor in _weights(self._program.module):
            name = dtype_name(tensor.dtype)
            counts[name] = counts.get(name, 0) + tensor.numel()
        word = of_weights(counts) or ("unknown" if self._cast is None else of_weights({dtype_name(self._cast): 1}))
        allowed = self._device.startswith("cuda") and "True" in self._tf32().values()
        return "fp32 (tf32 allowed)" if word == "fp32" and allowed else str(word)

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:
        program, module = self._program, self._program.module
        feeds: list[tuple[Any, Any]] = []
        values: dict[str, Any] = {}
        for spec in program.specs():
            if spec.name in program.numbers:
                values[spec.name] = inputs[spec.name].item()
                continue
            here = self._tensor(inputs[spec.name], spec.dtype)
            values[spec.name] = here.to(self._device)
            feeds.append((values[spec.name], here))
        args, kwargs = program.arrange(values)
        _enter_inference_mode(self._torch)
        work = TorchWork(self._torch, module, args, kwargs, self._chosen.mode, self._device)
        if self._device != "cpu":
            options = self._options
            return TorchDeviceCall(work, feeds, inputs_at=options.inputs_at, outputs_at=options.outputs_at)
        return PreparedRun(work) if self._chosen.mode != "eager" else lambda: module(*args, **kwargs)

    def _tensor(self, array: Array, dtype: str) -> Any:
        """Return an input on the host, in the type and the layout in which it is fed."""
        torch = self._torch
        if dtype == "bfloat16":
            tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array)
        if self._cast is not None and tensor.is_floating_point():
            tensor = tensor.to(self._cast)
        if self._chosen.channels_last and tensor.dim() == 4:
            tensor = tensor.to(memory_format=torch.channels_last)
        return tensor

    def outputs(self, raw: Any) -> dict[str, Array]:
        return {name: _array(self._torch, value) for name, value in _leaves(raw, "output")}


def _leaves(raw: Any, name: str) -> list[tuple[str, Any]]:
    """Return every tensor or number of an answer: by its key in a dictionary, by its number in a sequence."""
    if isinstance(raw, Mapping):
        return [leaf for key, value in raw.items() for leaf in _leaves(value, str(key))]
    if isinstance(raw, (list, tuple)):
        return [leaf for index, value in enumerate(raw) for leaf in _leaves(value, f"{name}{index}")]
    return [] if raw is None else [(name, raw)]


def _array(torch: Any, value: Any) -> Array:
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach().cpu()
    # Copied, because an answer may be a view of an input that the next call overwrites.
    return np.array((value.float() if value.dtype == torch.bfloat16 else value).numpy())
