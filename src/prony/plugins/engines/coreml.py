"""Engine for Core ML models on a Mac's CPU, GPU and Neural Engine."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError, NotFoundError, SutError
from prony.plugins.engines.tensors import of_weights
from prony.ports.engine import Array, Effect, EngineInfo, LoadOptions, TensorSpec, Unit

# Unit -> (what Core ML may use, the device that must be there, how a person calls it, its name in campaigns).
_UNITS: dict[str, tuple[str, str, str, str | None]] = {
    "cpu": ("CPU_ONLY", "MLCPUComputeDevice", "CPU", None),
    "coreml-gpu": ("CPU_AND_GPU", "MLGPUComputeDevice", "GPU", "GPU (CoreML)"),
    "neural-engine": ("CPU_AND_NE", "MLNeuralEngineComputeDevice", "Neural Engine", "Neural Engine (CoreML)"),
}
_DEVICES = {device: description for _, device, description, _ in _UNITS.values()}
# Core ML's numbers for the types of arrays, of values in an ML program, and of colours.
_ARRAY_DTYPES = {65552: "float16", 65568: "float32", 65600: "float64", 131104: "int32", 131080: "int8"}
_PROGRAM_DTYPES = {10: "float16", 11: "float32", 12: "float64", 21: "int8", 31: "uint8"}
_GRAYSCALE, _GRAYSCALE_FLOAT16 = 10, 40


class CoreMl:
    """The CPU, the GPU and the Neural Engine of a Mac."""

    name: ClassVar[str] = "coreml"
    formats: ClassVar[tuple[str, ...]] = (".mlpackage", ".mlmodel")
    reference_formats: ClassVar[tuple[str, ...]] = (".mlpackage", ".mlmodel")
    requirements: ClassVar[tuple[str, ...]] = ("coremltools", "pillow")
    extra: ClassVar[str] = "coreml"

    def unsupported_reason(self) -> str | None:
        return None if sys.platform == "darwin" else f"Core ML runs models only on macOS, and this is {sys.platform}"

    def preload(self) -> str:
        import coremltools

        return str(coremltools.__version__)

    def probe(self) -> EngineInfo:
        present = _present()
        units = [
            Unit(name, f"{description} through Core ML", ("default",), seed_name)
            for name, (_, device, description, seed_name) in _UNITS.items()
            if device in present
        ]
        return EngineInfo(self.preload(), units)

    def load(self, path: str, options: LoadOptions) -> CoreMlSession:
        reason = self.unsupported_reason()
        if reason is not None:
            raise CapacityError(reason, hint="run this job on a Mac", code="unit_unavailable")
        import coremltools

        _check(path, options)
        compute_units = getattr(coremltools.ComputeUnit, _UNITS[options.unit][0])
        try:
            model = coremltools.models.MLModel(path, compute_units=compute_units)
        except (import_module("google.protobuf.message").DecodeError, RuntimeError, ValueError, OSError) as exc:
            raise InputError(
                f"{path} is not a Core ML model: {exc}", hint="check that the file is complete", code="model_invalid"
            ) from exc
        return CoreMlSession(model, compute_units, options.unit)


def _present() -> set[str]:
    from coremltools.models.compute_device import MLComputeDevice

    return {type(device).__name__ for device in MLComputeDevice.get_all_compute_devices()}


def _check(path: str, options: LoadOptions) -> None:
    if options.unit not in _UNITS or _UNITS[options.unit][1] not in _present():
        raise CapacityError(
            f"this Mac has no unit {options.unit!r} for Core ML",
            hint=f"known: {', '.join(_UNITS)}",
            code="unit_unavailable",
        )
    if options.precision not in ("default", "fp32"):
        raise InputError(
            f"precision {options.precision} was requested, but Core ML uses the precision of the converted model",
            hint="convert it with compute_precision set, and use precision: default",
            code="precision_unavailable",
        )
    if options.options:
        raise InputError(f"coreml has no option {next(iter(options.options))!r}", hint="it takes none")
    if not Path(path).exists():
        raise NotFoundError(f"model not found: {path}", hint="check workload.model")


class CoreMlSession:
    """A loaded Core ML model."""

    def __init__(self, model: Any, compute_units: Any, unit: str) -> None:
        self._model = model
        self._compute_units = compute_units
        self._unit = unit
        self._spec = model.get_spec()

    def signature(self) -> list[TensorSpec]:
        return [_declare_input(feature) for feature in self._spec.description.input if not feature.type.isOptional]

    def effect(self) -> Effect:
        coverage = self._coverage()
        used = ", ".join(coverage) if coverage else f"{_UNITS[self._unit][2]} or the CPU: Core ML does not report which"
        return Effect(
            device=used,
            precision=_written_precision(self._spec),
            threads=None,
            coverage=coverage,
            details={"compute_units": self._compute_units.name, "kind": str(self._spec.WhichOneof("Type"))},
        )

    def _coverage(self) -> dict[str, float]:
        """Return the share of operations by the device that Core ML prefers; {} before macOS 14.4."""
        from coremltools.models.compute_plan import MLComputePlan

        try:
            plan = MLComputePlan.load_from_path(self._model.get_compiled_model_path(), self._compute_units)
        except (RuntimeError, AttributeError, TypeError):
            return {}
        counts = Counter(_DEVICES.get(device, device) for device in _preferred_units(plan))
        return {device: count / counts.total() for device, count in counts.most_common()}

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:
        features = {feature.name: feature for feature in self._spec.description.input}
        return partial(self._predict, {name: _value(features[name], array) for name, array in inputs.items()})

    def _predict(self, values: Mapping[str, Any]) -> Any:
        return self._model.predict(values)

    def outputs(self, raw: Any) -> dict[str, Array]:
        if not isinstance(raw, Mapping):
            raise SutError(
                f"Core ML answered with {type(raw).__name__} instead of named outputs",
                hint="convert the model again, with named outputs",
            )
        return {name: _array(value) for name, value in raw.items()}


def _preferred_units(plan: Any) -> Iterator[str]:
    structure = plan.model_structure
    if structure.program is not None:
        for function in structure.program.functions.values():
            for operation in function.block.operations:
                usage = plan.get_compute_device_usage_for_mlprogram_operation(operation)
                if usage is not None:  # constants run nowhere
                    yield type(usage.preferred_compute_device).__name__
    elif structure.neuralnetwork is not None:
        for layer in structure.neuralnetwork.layers:
            usage = plan.get_compute_device_usage_for_neuralnetwork_layer(layer)
            if usage is not None:
                yield type(usage.preferred_compute_device).__name__


def _declare_input(feature: Any) -> TensorSpec:
    """Return one input as Core ML describes it; an image is bytes of height, width and channels."""
    kind = feature.type.WhichOneof("Type")
    if kind == "imageType":
        image = feature.type.imageType
        channels = () if image.colorSpace in (_GRAYSCALE, _GRAYSCALE_FLOAT16) else (3,)
        return TensorSpec(feature.name, "uint8", (image.height, image.width, *channels), 256, "a pixel's bytes")
    if kind == "multiArrayType":
        array = feature.type.multiArrayType
        return TensorSpec(feature.name, _ARRAY_DTYPES[array.dataType], _shape(array))
    numbers = {"int64Type": "int64", "doubleType": "float64", "stringType": "str"}
    if kind in numbers:
        return TensorSpec(feature.name, numbers[kind], ())
    raise InputError(
        f"input {feature.name!r} is a {kind}, but Prony supports only arrays, images, numbers and text",
        hint="convert the model with arrays as inputs",
        code="unsupported_type",
    )


def _shape(array: Any) -> tuple[int | None, ...]:
    """Return the declared shape; an axis with a range is dynamic."""
    if array.WhichOneof("ShapeFlexibility") != "shapeRange":
        return tuple(int(dim) for dim in array.shape)
    ranges = array.shapeRange.sizeRanges
    return tuple(int(each.lowerBound) if each.lowerBound == each.upperBound else None for each in ranges)


def _written_precision(spec: Any) -> str:
    """Return what an ML program computes in, as its own operations say; an older network leaves it to Core ML."""
    if spec.WhichOneof("Type") != "mlProgram":
        return "unknown"
    counts: Counter[str] = Counter()
    for function in spec.mlProgram.functions.values():
        for block in function.block_specializations.values():
            for operation in block.operations:
                counts.update(_PROGRAM_DTYPES.get(output.type.tensorType.dataType, "") for output in operation.outputs)
    return of_weights(counts) or "unknown"


def _value(feature: Any, array: Array) -> Any:
    kind = feature.type.WhichOneof("Type")
    if kind == "imageType":
        from PIL import Image

        return Image.fromarray(array)
    return array if kind == "multiArrayType" else array.item()


def _array(value: Any) -> Array:
    if isinstance(value, Mapping):  # probabilities by class
        return np.asarray([value[key] for key in sorted(value, key=str)])
    return np.asarray(value)
