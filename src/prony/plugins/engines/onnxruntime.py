"""Engine for ONNX models with ONNX Runtime, on the requested execution provider and never on another."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from prony.errors import CapacityError, InputError, NotFoundError, PronyError, SutError
from prony.plugins.engines.cuda_cards import find_cuda_card, list_cuda_cards
from prony.plugins.engines.onnxruntime_providers import CPU, ProviderUnit, apply_options, coverage, units_of
from prony.plugins.engines.tensors import complete_inputs, flatten_output, from_memory, of_weights, plain_array
from prony.ports.engine import (
    Array,
    Effect,
    EngineInfo,
    GpuBuild,
    LoadOptions,
    TensorSpec,
    Unit,
    gpu_build_command,
)
from prony.runner.child.bits import CARRIERS
from prony.runner.onnx_file import OnnxGraph, read_graph

_DTYPES = {"float": "float32", "double": "float64", "string": "str"}
# The numbers of ONNX's own list of types, for those that numpy lacks.
_ELEMENT_TYPES = {
    "bfloat16": 16,
    "float8e4m3fn": 17,
    "float8e4m3fnuz": 18,
    "float8e5m2": 19,
    "float8e5m2fnuz": 20,
}
# An ONNX model of one Identity on one float: the smallest thing that makes a provider initialise.
_IDENTITY = bytes.fromhex(
    "08083a370a100a017812017922084964656e746974791201675a0f0a0178120a0a08080112040a020801620f0a0179120a0a0808011204"
    "0a02080142040a00100d"
)


def turn_off_telemetry() -> None:
    """Keep ONNX Runtime from reporting to its maker, unless the user's environment decides otherwise.

    Since 1.29 it keeps a database in the user's home and talks to the network from a thread while we measure, and a
    fork would inherit the database's open files without that thread.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def _import_onnxruntime() -> Any:
    turn_off_telemetry()
    import onnxruntime

    return onnxruntime


class OnnxRuntime:
    """Every execution provider that the installed build offers, each as a unit."""

    name: ClassVar[str] = "onnxruntime"
    formats: ClassVar[tuple[str, ...]] = (".onnx", ".ort")
    reference_formats: ClassVar[tuple[str, ...]] = (".onnx",)
    requirements: ClassVar[tuple[str, ...]] = ("onnxruntime",)
    extra: ClassVar[str] = "onnx"
    gpu_builds: ClassVar[tuple[GpuBuild, ...]] = (
        GpuBuild("onnxruntime-gpu", ("cuda",), ("onnxruntime-gpu[cuda,cudnn]",), cuda="13.0"),
        GpuBuild("tensorrt", ("tensorrt",), ("onnxruntime-gpu[cuda,cudnn]", "tensorrt-cu13>=10,<11"), cuda="13.0"),
        GpuBuild("onnxruntime-directml", ("directml",), ("onnxruntime-directml",), systems=("win32",)),
    )

    def preload(self) -> str:
        # Cards are numbered as the driver and nvidia-smi number them, unless the user's environment says otherwise.
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        return str(_import_onnxruntime().__version__)

    def probe(self) -> EngineInfo:
        ort = _import_onnxruntime()
        units, broken = [], {}
        for provider in ort.get_available_providers():
            for unit in units_of(provider):
                reason = _why_not(ort, unit)
                if reason is None:
                    units += [
                        Unit(name, unit.description, _precisions(unit), unit.seed_name) for name in _names_of(unit)
                    ]
                else:
                    broken[f"unavailable.{unit.name}"] = reason
        units.sort(key=lambda unit: unit.name != "cpu")
        details = {"build": str(ort.get_build_info()), "providers": ", ".join(ort.get_available_providers())}
        return EngineInfo(ort.__version__, units, details | broken)

    def load(self, path: str, options: LoadOptions) -> OnnxSession:
        ort = _import_onnxruntime()
        unit = _find(ort, options.unit)
        session_options = ort.SessionOptions()
        session_options.log_severity_level = 3
        session_options.intra_op_num_threads = options.threads
        session_options.inter_op_num_threads = 1
        provider_options = dict(unit.options) | dict(unit.by_precision.get(options.precision, {}))
        provider_options |= apply_options(ort, session_options, options.options)
        folder = tempfile.TemporaryDirectory(prefix="prony-profile-") if options.profile else None
        if folder is not None:
            session_options.enable_profiling = True
            session_options.profile_file_prefix = str(Path(folder.name) / "profile")
        session = _open(ort, path, session_options, unit, provider_options)
        return OnnxSession(session, path, unit, options, folder)


def _names_of(unit: ProviderUnit) -> list[str]:
    """Return what a unit is called: with a number where there are several cards of its kind."""
    count = len(list_cuda_cards()) if unit.tensors == "cuda" else 1
    return [unit.name] if count < 2 else [f"{unit.name}-{index}" for index in range(count)]


def _find(ort: Any, name: str) -> ProviderUnit:
    """Return the unit of this name among those that the build offers, on the card that the name tells."""
    offered = [unit for provider in ort.get_available_providers() for unit in units_of(provider)]
    for unit in offered:
        if unit.name == name:
            return unit
        if unit.tensors == "cuda" and name.startswith((f"{unit.name}-", f"{unit.name}:")):
            number = find_cuda_card(name, list_cuda_cards())
            if number is not None:
                return replace(unit, options={**unit.options, "device_id": str(number)})
    command = gpu_build_command(OnnxRuntime, name)
    names = ", ".join(name for unit in offered for name in _names_of(unit))
    raise CapacityError(
        f"this build of onnxruntime has no unit {name!r}",
        hint=f"available: {names}" + (f"; another build: {command}" if command else ""),
        code="unit_unavailable",
    )


def _open(ort: Any, model: str | bytes, session_options: Any, unit: ProviderUnit, options: dict[str, str]) -> Any:
    """Create a session whose first provider is the asked one; the CPU takes only the nodes that it cannot."""
    if unit.tensors == "cuda" and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    if unit.name == "tensorrt":
        with suppress(ImportError):  # its package brings the libraries into this process, where it is installed
            importlib.import_module("tensorrt")
    providers: list[Any] = [(unit.provider, options)] + ([] if unit.provider == CPU else [CPU])
    try:
        session = ort.InferenceSession(model, session_options, providers=providers, enable_fallback=0)
    except _vendor_errors(ort) as exc:
        raise _translate_error(model, unit, exc) from exc
    used = session.get_providers()[0]
    if used != unit.provider:
        raise CapacityError(
            f"{unit.provider} did not start on this machine: onnxruntime would have run on {used}",
            hint="check its driver and libraries; `prony engines` shows what works on this machine",
            code="unit_unavailable",
        )
    session.disable_fallback()
    return session


def _vendor_errors(ort: Any) -> tuple[type[Exception], ...]:
    state = ort.capi.onnxruntime_pybind11_state
    named = (getattr(state, name) for name in dir(state))
    own = (kind for kind in named if isinstance(kind, type) and issubclass(kind, Exception))
    return (*own, RuntimeError, ValueError)


def _translate_error(model: str | bytes, unit: ProviderUnit, exc: Exception) -> PronyError:
    """Say whose move it is when a session could not be made."""
    kind, where = type(exc).__name__, model if isinstance(model, str) else "the probe's model"
    if kind == "NoSuchFile":
        return NotFoundError(f"model not found: {where}", hint="check workload.model")
    if kind in ("InvalidProtobuf", "NoModel"):
        return InputError(
            f"{where} is not an ONNX model: {exc}", hint="check that the file is complete", code="model_invalid"
        )
    if kind in ("InvalidGraph", "InvalidArgument"):
        return InputError(
            f"onnxruntime rejects {where}: {exc}",
            code="model_invalid",
            hint="export the model again, for operators that this version of onnxruntime has",
        )
    if unit.provider != CPU and kind in ("EPFail", "RuntimeError", "ValueError"):
        return CapacityError(
            f"{unit.provider} did not start: {exc}",
            code="unit_unavailable",
            hint="check the driver of the device, or set unit: cpu",
        )
    return SutError(
        f"onnxruntime cannot load {where}: {exc}",
        code="load_failed",
        hint="export the model again, or try another engine: prony engines",
    )


def _why_not(ort: Any, unit: ProviderUnit) -> str | None:
    """Return why a provider of this build does not start here, or None."""
    if unit.provider == CPU:
        return None
    session_options = ort.SessionOptions()
    session_options.log_severity_level = 4
    try:
        _open(ort, _IDENTITY, session_options, unit, dict(unit.options))
    except PronyError as exc:
        return exc.message
    return None


def _precisions(unit: ProviderUnit) -> tuple[str, ...]:
    """Return what can be asked for: a file of that type always, and what the provider converts to."""
    return tuple(dict.fromkeys(("default", "fp32", "fp16", "int8", *unit.by_precision)))


class OnnxSession:
    """A loaded ONNX model."""

    def __init__(self, session: Any, path: str, unit: ProviderUnit, options: LoadOptions, folder: Any) -> None:
        self._session = session
        self._path = path
        self._unit = unit
        self._options = options
        self._profile_folder = folder
        self._coverage: dict[str, float] = {CPU: 1.0} if unit.provider == CPU else {}
        self._leaves_on_device = False
        self._outputs = [output.name for output in session.get_outputs()]

    @cached_property
    def _graph(self) -> OnnxGraph | None:
        # Read when first asked for, so that it costs nothing inside the timed load.
        return read_graph(self._path) if self._path.endswith(".onnx") else None

    def signature(self) -> list[TensorSpec]:
        self._check_precision()
        specs = [
            TensorSpec(declared.name, _tensor_dtype(declared), tuple(declared.shape))
            for declared in self._session.get_inputs()
            if not declared.type.startswith("optional(")
        ]
        return complete_inputs(specs, self._graph) if self._graph else specs

    def _check_precision(self) -> None:
        asked, written = self._options.precision, self._written_precision
        if asked in ("default", "fp32", written) or asked in self._unit.by_precision:
            return
        raise InputError(
            f"precision {asked} was requested, but {Path(self._path).name} is in {written}",
            hint="onnxruntime does not convert precision: convert the file, or use precision: default",
            code="precision_unavailable",
        )

    @cached_property
    def _written_precision(self) -> str:
        weights = self._graph.weight_types if self._graph else {}
        fed = dict.fromkeys((_inner(item) for item in self._session.get_inputs()), 1)
        return of_weights(weights) or of_weights(fed) or "unknown"

    def effect(self) -> Effect:
        self._read_profile()
        session_options = self._session.get_session_options()
        provider_options = self._session.get_provider_options().get(self._unit.provider, {})
        details = {
            "providers": ", ".join(self._session.get_providers()),
            "graph_optimization_level": session_options.graph_optimization_level.name,
            "execution_mode": session_options.execution_mode.name,
            "inter_op_num_threads": str(session_options.inter_op_num_threads),
        } | {f"provider.{key}": str(value) for key, value in provider_options.items()}
        return Effect(
            device=":".join([self._unit.provider, *filter(None, [provider_options.get("device_id")])]),
            precision=self._precision(provider_options),
            threads=session_options.intra_op_num_threads,
            coverage=dict(self._coverage),
            details=details,
            outputs_at="device" if self._leaves_on_device else None,
        )

    def _precision(self, provider_options: Mapping[str, str]) -> str:
        for precision, options in self._unit.by_precision.items():
            if precision != "fp32" and all(provider_options.get(key) == value for key, value in options.items()):
                return precision
        if self._written_precision == "fp32" and provider_options.get("use_tf32") == "1":
            return "fp32 (tf32 allowed)"
        return self._written_precision

    def _read_profile(self) -> None:
        if self._profile_folder is None:
            return
        written = Path(self._session.end_profiling())
        self._coverage = coverage(written)
        self._profile_folder.cleanup()
        self._profile_folder = None

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:
        feeds = dict(inputs)
        if self._unit.tensors is not None and all(array.dtype.kind != "O" for array in feeds.values()):
            return self._bound_on_device(feeds, self._unit.tensors)
        types = {item.name: _inner(item) for item in (*self._session.get_inputs(), *self._session.get_outputs())}
        if any(dtype in CARRIERS for dtype in types.values()):
            values = {name: _ort_value(array, types[name]) for name, array in feeds.items()}
            return partial(self._session.run_with_ort_values, self._outputs, values)
        # What a user's own loop calls; the partial adds nothing to it that can be measured.
        return partial(self._session.run, self._outputs, feeds)

    def _bound_on_device(self, feeds: Mapping[str, Array], device: str) -> Callable[[], Any]:
        """Put the inputs on the device now; the timed call runs, waits and leaves the outputs where the recipe says.

        With `inputs: host` the call copies the inputs again, from ordinary memory.
        """
        import onnxruntime as ort

        number = int(self._session.get_provider_options()[self._unit.provider].get("device_id", "0"))
        binding = self._session.io_binding()
        there = {name: ort.OrtValue.ortvalue_from_numpy(array, device, number) for name, array in feeds.items()}
        for name, value in there.items():
            binding.bind_ortvalue_input(name, value)
        # What numpy has no type for can be read from the host's memory alone.
        is_plain = not any(_inner(item) in CARRIERS for item in self._session.get_outputs())
        self._leaves_on_device = is_plain and self._options.outputs_at == "device"
        place = (device, number) if self._leaves_on_device else ("cpu",)
        for name in self._outputs:
            binding.bind_output(name, *place)
        # Binding an array of the host would copy it now and never again.
        again = list(zip(there.values(), feeds.values(), strict=True)) if self._options.inputs_at == "host" else []
        return BoundCall(self._session, binding, again, _card_id(device, number))

    def outputs(self, raw: Any) -> dict[str, Array]:
        values = raw if isinstance(raw, list) else _fetched_outputs(raw, is_on_device=self._leaves_on_device)
        named: dict[str, Array] = {}
        for name, value in zip(self._outputs, values, strict=True):
            named |= {name: _on_host(value)} if hasattr(value, "data_ptr") else flatten_output(name, value)
        return named


class BoundCall:
    """One inference on a card: copies the inputs that come from the host, runs, and waits."""

    def __init__(self, session: Any, binding: Any, copied: Sequence[tuple[Any, Array]], device_id: str) -> None:
        """`copied` has each input on the device with the array that every call copies there."""
        self._run = session.run_with_iobinding
        self._binding = binding
        self._copied = copied
        self.device_id = device_id

    def __call__(self) -> Any:
        for there, here in self._copied:
            there.update_inplace(here)
        self._run(self._binding)
        self._binding.synchronize_outputs()
        return self._binding


def _card_id(device: str, number: int) -> str:
    cards = list_cuda_cards() if device == "cuda" else []
    return cards[number] if number < len(cards) else ""


def _fetched_outputs(binding: Any, *, is_on_device: bool) -> Any:
    """Return what a binding holds, as arrays where it is on the device: its memory cannot be read from here."""
    return binding.copy_outputs_to_cpu() if is_on_device else binding.get_outputs()


def _inner(declared: Any) -> str:
    """Return the type inside `tensor(...)` by numpy's name where it has one; whatever else it is as it is."""
    kind = str(declared.type)
    inner = kind.removeprefix("tensor(").removesuffix(")") if kind.startswith("tensor(") else kind
    return _DTYPES.get(inner, inner)


def _tensor_dtype(declared: Any) -> str:
    if not str(declared.type).startswith("tensor("):
        raise InputError(
            f"input {declared.name!r} is a {declared.type}, but Prony supports only tensors",
            hint="export the model with plain tensors as inputs",
            code="unsupported_type",
        )
    return _inner(declared)


def _ort_value(array: Array, dtype: str) -> Any:
    import onnxruntime as ort

    if dtype in _ELEMENT_TYPES:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _ELEMENT_TYPES[dtype])
    return ort.OrtValue.ortvalue_from_numpy(array)


def _on_host(value: Any) -> Array:
    dtype = value.data_type().removeprefix("tensor(").removesuffix(")")
    if dtype in CARRIERS:
        return from_memory(value.data_ptr(), value.tensor_size_in_bytes(), dtype, tuple(value.shape()))
    return plain_array(value.numpy())
