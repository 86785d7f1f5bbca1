"""Engine for ONNX, OpenVINO and TFLite models with OpenVINO on the requested device."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from prony.errors import CapacityError, InputError, NotFoundError, SutError
from prony.plugins.engines.tensors import WORDS, complete_inputs, format_shares, of_weights, plain_array
from prony.ports.engine import UNKNOWN_RANK, Array, Effect, EngineInfo, LoadOptions, TensorSpec, Unit
from prony.ports.llm import LlmOptions
from prony.ports.unit_names import unit_aliases
from prony.runner.child.bits import CARRIERS, from_bfloat16
from prony.runner.onnx_file import OnnxGraph, read_graph

_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "f8e4m3": "float8e4m3fn",
    "f8e5m2": "float8e5m2",
    "boolean": "bool",
    "string": "str",
} | {f"{short}{bits}": f"{long}{bits}" for short, long in (("i", "int"), ("u", "uint")) for bits in (4, 8, 16, 32, 64)}
_HINTS = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
# Layers that only hold, move or convert data say nothing of what the model computes in.
_CARRYING = {"Const", "Input", "Output", "Reorder", "Convert", "Reshape", "Parameter", "Result", "MemoryInput"}
# Where these exist they are nearly all of the arithmetic, so they alone decide.
_COMPUTING = {"Convolution", "Deconvolution", "FullyConnected", "MatMul", "Gemm", "RNNSeq", "ScaledDotProductAttention"}
_CONVERT_HINT = "the file is complete, but OpenVINO does not support all of it; try another engine"


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry, which starts a thread and talks to the network while we measure."""
    cast("dict[str, object]", sys.modules).setdefault("openvino_telemetry", None)
    import openvino

    return openvino


class OpenVino:
    """Every device that OpenVINO sees, each as a unit."""

    name: ClassVar[str] = "openvino"
    formats: ClassVar[tuple[str, ...]] = (".onnx", ".xml", ".tflite")
    reference_formats: ClassVar[tuple[str, ...]] = (".xml",)
    requirements: ClassVar[tuple[str, ...]] = ("openvino",)
    extra: ClassVar[str] = "openvino"

    def preload(self) -> str:
        return str(import_openvino().__version__)

    def probe(self) -> EngineInfo:
        openvino = import_openvino()
        core = openvino.Core()
        units = [
            Unit(device.lower(), str(core.get_property(device, "FULL_DEVICE_NAME")).strip(), _precisions(core, device))
            for device in core.available_devices
        ]
        return EngineInfo(str(openvino.__version__), sorted(units, key=lambda unit: unit.name != "cpu"))

    def load(self, path: str, options: LoadOptions) -> OpenVinoSession:
        openvino = import_openvino()
        core = openvino.Core()
        device = find_openvino_device(core, options.unit)
        config = compile_settings(core, device, options)
        model = _read(core, path)
        declared = [_Port.of(port) for port in model.inputs]
        shapes = _known_shapes(model, options)
        try:
            if shapes:
                model.reshape(shapes)
            compiled = core.compile_model(model, device, config)
        except RuntimeError as exc:
            raise SutError(
                f"OpenVINO cannot compile {path} for {device}: {exc}",
                code="load_failed",
                hint="check workload.inputs, or try another engine or unit: prony engines",
            ) from exc
        check_openvino_precision(compiled, device, options.precision)
        return OpenVinoSession(compiled, path, declared)


def _precisions(core: Any, device: str) -> tuple[str, ...]:
    told_by_device = (str(each).lower() for each in core.get_property(device, "OPTIMIZATION_CAPABILITIES"))
    return ("default", *(word for word in told_by_device if word in ("fp32", "fp16", "bf16", "int8")))


def find_openvino_device(core: Any, unit: str) -> str:
    """Return what OpenVINO calls the device of a unit."""
    devices = list(core.available_devices)
    for name in (unit,) if ":" in unit else unit_aliases(unit):
        for device in devices:
            if name == device.lower():
                return str(device)
    raise CapacityError(
        f"OpenVINO sees no unit {unit!r} on this machine",
        hint=f"available: {', '.join(device.lower() for device in devices)}; check the device's driver",
        code="unit_unavailable",
    )


def compile_settings(core: Any, device: str, options: LoadOptions | LlmOptions) -> dict[str, Any]:
    """Return the properties that a model is compiled with; one that the device does not know is refused."""
    known = core.get_property(device, "SUPPORTED_PROPERTIES")
    config: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY"}
    if "INFERENCE_NUM_THREADS" in known:
        config["INFERENCE_NUM_THREADS"] = options.threads
    if options.precision in _HINTS:
        config["INFERENCE_PRECISION_HINT"] = _HINTS[options.precision]
    for key, value in options.options.items():
        if key not in known:
            near = difflib.get_close_matches(key.upper(), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            raise InputError(f"OpenVINO's {device} has no option {key!r}", hint=hint)
        config[key] = value
    return config


def _read(core: Any, path: str) -> Any:
    if not Path(path).exists():
        raise NotFoundError(f"model not found: {path}", hint="check workload.model")
    try:
        return core.read_model(path)
    except RuntimeError as exc:
        if "OpConversionFailure" in str(exc):
            raise SutError(f"OpenVINO cannot convert {path}: {exc}", hint=_CONVERT_HINT, code="load_failed") from exc
        raise InputError(
            f"OpenVINO cannot read {path}: {exc}", hint="check that the file is complete", code="model_invalid"
        ) from exc


def check_openvino_precision(compiled: Any, device: str, asked: str) -> None:
    """Refuse a precision that the device takes silently for another: bf16 becomes f16 where a CPU lacks it."""
    if asked in _HINTS:
        used = WORDS.get(compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name())
        if used != asked:
            raise CapacityError(
                f"precision {asked} was requested, but OpenVINO uses {used} on {device}",
                hint="`prony engines` lists the precisions of each unit",
                code="precision_unavailable",
            )
    elif asked == "int8" and of_weights(_layer_types(compiled)) not in ("int8", "mixed"):
        raise InputError(
            "precision int8 was requested, but no layer of this model runs in it",
            hint="OpenVINO only runs quantized models in int8: quantize the file first, for example with nncf",
            code="precision_unavailable",
        )


def _layer_types(compiled: Any) -> Counter[str]:
    """Return how many of the layers that compute run in which type, as the device tells of its own graph."""
    computing: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for layer in compiled.get_runtime_model().get_ordered_ops():
        told_of = layer.get_rt_info()
        if "runtimePrecision" not in told_of or "layerType" not in told_of:
            continue
        kind, dtype = told_of["layerType"].astype(str), told_of["runtimePrecision"].astype(str).lower()
        if kind in _COMPUTING:
            computing[dtype] += 1
        elif kind not in _CARRYING:
            others[dtype] += 1
    return computing or others


def _known_shapes(model: Any, options: LoadOptions) -> dict[int, list[int]]:
    """Return the shapes that are known before compiling, by the position of the input."""
    found: dict[int, list[int]] = {}
    for position, port in enumerate(model.inputs):
        for name in port.get_names() & options.shapes.keys():
            found[position] = list(options.shapes[name])
    return found


@dataclass(frozen=True)
class _Port:
    """An input or output. OpenVINO gives one tensor several names where layers between them were folded away."""

    names: frozenset[str]
    dtype: str
    shape: tuple[int | str | None, ...]

    @staticmethod
    def of(port: Any) -> _Port:
        kind = port.get_element_type().get_type_name()
        shape = port.get_partial_shape()
        dims: tuple[int | str | None, ...] = UNKNOWN_RANK
        if shape.rank.is_static:
            dims = tuple(int(dim.get_length()) if dim.is_static else None for dim in shape)
        return _Port(frozenset(port.get_names()), _DTYPES.get(kind, kind), dims)

    def name(self, known: Iterable[str], otherwise: str) -> str:
        """Return the name that the file uses, or the first of its own."""
        return next((name for name in known if name in self.names), min(self.names, default=otherwise))


class OpenVinoSession:
    """A compiled model and the one request that runs it."""

    def __init__(self, compiled: Any, path: str, inputs: list[_Port]) -> None:
        self._compiled = compiled
        self._path = path
        self._inputs = inputs
        self._request = compiled.create_infer_request()

    @cached_property
    def _graph(self) -> OnnxGraph | None:
        # Read when first asked for, so that it costs nothing inside the timed load.
        return read_graph(self._path) if self._path.endswith(".onnx") else None

    @cached_property
    def _specs(self) -> list[TensorSpec]:
        known = [value.name for value in self._graph.inputs] if self._graph else []
        specs = [
            TensorSpec(port.name(known, f"input{position}"), port.dtype, port.shape)
            for position, port in enumerate(self._inputs)
        ]
        # OpenVINO forgets the names of axes, and with them what size they should have.
        return complete_inputs(specs, self._graph) if self._graph else specs

    def signature(self) -> list[TensorSpec]:
        return list(self._specs)

    def effect(self) -> Effect:
        return describe_compiled(self._compiled)

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:
        for position, spec in enumerate(self._specs):
            self._request.set_input_tensor(position, _tensor(inputs[spec.name], spec.dtype))
        # Shared, so that the timer holds the inference and no copy of its outputs.
        return partial(self._request.infer, share_outputs=True)

    def outputs(self, raw: Any) -> dict[str, Array]:  # noqa: ARG002 - the request keeps the outputs itself
        known = [value.name for value in self._graph.outputs] if self._graph else []
        return {
            _Port.of(port).name(known, f"output{position}"): _array(self._request.get_output_tensor(position))
            for position, port in enumerate(self._compiled.outputs)
        }


def describe_compiled(compiled: Any) -> Effect:
    """Ask a compiled model what it does, and in which types its layers compute."""
    types = _layer_types(compiled)
    devices = [str(device) for device in compiled.get_property("EXECUTION_DEVICES")]
    supported = compiled.get_property("SUPPORTED_PROPERTIES")
    names = ("INFERENCE_PRECISION_HINT", "EXECUTION_MODE_HINT", "PERFORMANCE_HINT", "NUM_STREAMS", "KV_CACHE_PRECISION")
    details = {name.lower(): _format_property(compiled.get_property(name)) for name in names if name in supported}
    hint = WORDS.get(details.get("inference_precision_hint", ""), "unknown")
    return Effect(
        device=", ".join(devices),
        precision=_precision(of_weights(types), hint),
        threads=compiled.get_property("INFERENCE_NUM_THREADS") if "INFERENCE_NUM_THREADS" in supported else None,
        coverage={devices[0]: 1.0} if len(devices) == 1 else {},
        details=details | ({"layer_precisions": format_shares(types)} if types else {}),
    )


def _tensor(array: Array, dtype: str) -> Any:
    openvino = import_openvino()
    if dtype == "str":
        return openvino.Tensor(plain_array(array))
    if dtype in CARRIERS:
        kind = next(short for short, name in _DTYPES.items() if name == dtype)
        return openvino.Tensor(array, list(array.shape), getattr(openvino.Type, kind))
    return openvino.Tensor(array, shared_memory=True)


def _array(tensor: Any) -> Array:
    kind = tensor.element_type.get_type_name()
    if kind == "string":
        return plain_array(tensor.str_data)
    if kind == "bf16":
        return from_bfloat16(np.asarray(tensor.data).view(np.uint16))
    return np.array(tensor.data)


def _precision(layers: str | None, hint: str) -> str:
    """Return what the layers say, unless values are rounded between them: fused layers say f32 even then."""
    if layers == "fp32" and hint in ("fp16", "bf16"):
        return "mixed"
    return layers or hint


def _format_property(value: Any) -> str:
    """Return a property as OpenVINO's own short word."""
    if hasattr(value, "get_type_name"):
        return str(value.get_type_name())
    return str(getattr(value, "name", value))
