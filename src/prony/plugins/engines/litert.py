"""Engine for TFLite models with LiteRT on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError, NotFoundError, SutError
from prony.plugins.engines.tensors import of_weights
from prony.ports.engine import Array, Effect, EngineInfo, LoadOptions, TensorSpec, Unit

_RESOLVERS = {"xnnpack": "AUTO", "none": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "reference": "BUILTIN_REF"}
_DELEGATE = "XNNPACK"
_OWN = "LiteRT"


class LiteRt:
    """The CPU, with XNNPACK taking every operator that it can."""

    name: ClassVar[str] = "litert"
    formats: ClassVar[tuple[str, ...]] = (".tflite",)
    reference_formats: ClassVar[tuple[str, ...]] = (".tflite",)
    requirements: ClassVar[tuple[str, ...]] = ("ai-edge-litert",)
    extra: ClassVar[str] = "litert"

    def preload(self) -> str:
        import ai_edge_litert
        import ai_edge_litert.interpreter

        return str(ai_edge_litert.__version__)

    def probe(self) -> EngineInfo:
        unit = Unit("cpu", "CPU, with XNNPACK", ("default", "fp32", "fp16", "int8"))
        return EngineInfo(self.preload(), [unit])

    def load(self, path: str, options: LoadOptions) -> LiteRtSession:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        if options.unit != "cpu":
            raise CapacityError(
                f"LiteRT runs on the CPU only, not on {options.unit!r}", hint="use unit: cpu, or another engine",
                code="unit_unavailable",
            )  # fmt: skip
        resolver = getattr(OpResolverType, _RESOLVERS[_delegate(options)])
        if not Path(path).exists():
            raise NotFoundError(f"model not found: {path}", hint="check workload.model")
        try:
            interpreter = Interpreter(path, num_threads=options.threads, experimental_op_resolver_type=resolver)
        except ValueError as exc:
            raise InputError(
                f"{path} is not a TFLite model: {exc}", hint="check that the file is complete", code="model_invalid"
            ) from exc
        session = LiteRtSession(interpreter, path, options)
        session.allocate_if_known(options.shapes)
        return session


def _delegate(options: LoadOptions) -> str:
    unknown = [key for key in options.options if key != "delegate"]
    if unknown:
        raise InputError(f"LiteRT has no option {unknown[0]!r}", hint="known: delegate")
    asked = str(options.options.get("delegate", "xnnpack"))
    if asked not in _RESOLVERS:
        raise InputError(f"option delegate has the unknown value {asked!r}", hint=f"use one of {', '.join(_RESOLVERS)}")
    return asked


class LiteRtSession:
    """An interpreter with its tensors allocated."""

    def __init__(self, interpreter: Any, path: str, options: LoadOptions) -> None:
        self._interpreter = interpreter
        self._path = path
        self._options = options
        self._is_allocated = False

    def allocate_if_known(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Allocate while loading. A file holds sizes of one for open axes, at which some models cannot be: these are
        allocated when their inputs are bound."""
        try:
            self.allocate(shapes)
        except SutError:
            if all(dim is not None for spec in map(_spec, self._interpreter.get_input_details()) for dim in spec.shape):
                raise

    def allocate(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Give the inputs these shapes and allocate; an input that is not named keeps its own."""
        try:
            for detail in self._interpreter.get_input_details():
                shape = shapes.get(detail["name"])
                if shape is not None and tuple(detail["shape"]) != tuple(shape):
                    self._interpreter.resize_tensor_input(detail["index"], list(shape), strict=True)
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as exc:
            raise SutError(
                f"LiteRT cannot prepare {self._path}: {exc}",
                code="load_failed",
                hint="check workload.inputs, and that the model runs with LiteRT outside of Prony",
            ) from exc
        self._is_allocated = True

    def signature(self) -> list[TensorSpec]:
        self._check_precision()
        return [_spec(detail) for detail in self._interpreter.get_input_details()]

    def _check_precision(self) -> None:
        asked, written = self._options.precision, self._precision()
        if asked not in ("default", "fp32", written):
            raise InputError(
                f"precision {asked} was requested, but {Path(self._path).name} is in {written}",
                hint="LiteRT does not convert precision: convert the file, or use precision: default",
                code="precision_unavailable",
            )

    def _precision(self) -> str:
        counts: dict[str, int] = {}
        for detail in self._interpreter.get_tensor_details():
            dtype = np.dtype(detail["dtype"]).name
            counts[dtype] = counts.get(dtype, 0) + int(np.prod(detail["shape"], dtype=np.int64))
        return of_weights(counts) or "unknown"

    def effect(self) -> Effect:
        coverage = self._coverage()
        used = _DELEGATE if coverage.get(_DELEGATE) else "none"
        return Effect(
            device="CPU",
            precision=self._precision(),
            threads=None,  # LiteRT does not tell how many it started, only how many it was given
            coverage=coverage,
            details={"delegate": used, "num_threads": f"{self._options.threads} given"},
        )

    def _coverage(self) -> dict[str, float]:
        """Return the share of operators that the delegate took over; {} where this version does not tell."""
        details = getattr(self._interpreter, "_get_ops_details", None)
        if details is None:
            return {}
        operators = [item for item in details() if item["op_name"] != "DELEGATE"]
        delegates = [item for item in details() if item["op_name"] == "DELEGATE"]
        taken = {index for delegate in delegates for index in _delegated_operators(delegate, operators)}
        if not operators:
            return {}
        share = len(taken) / len(operators)
        return {name: part for name, part in ((_DELEGATE, share), (_OWN, 1 - share)) if part}

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:
        details = self._interpreter.get_input_details()
        if not self._is_allocated or any(tuple(detail["shape"]) != inputs[detail["name"]].shape for detail in details):
            self.allocate({name: array.shape for name, array in inputs.items()})
        for detail in details:
            self._interpreter.set_tensor(detail["index"], inputs[detail["name"]])
        invoke: Callable[[], Any] = self._interpreter.invoke
        return invoke

    def outputs(self, raw: Any) -> dict[str, Array]:  # noqa: ARG002 - the interpreter keeps the outputs itself
        details = self._interpreter.get_output_details()
        return {detail["name"]: np.array(self._interpreter.get_tensor(detail["index"])) for detail in details}


def _delegated_operators(delegate: Mapping[str, Any], operators: list[dict[str, Any]]) -> set[int]:
    """Return the operators that one delegate replaced: those between its inputs and its outputs."""
    producers = {int(tensor): operator for operator in operators for tensor in operator["outputs"]}
    given = {int(tensor) for tensor in delegate["inputs"]}
    taken: set[int] = set()
    wanted = [int(tensor) for tensor in delegate["outputs"]]
    while wanted:
        operator = producers.get(wanted.pop())
        if operator is not None and operator["index"] not in taken:
            taken.add(operator["index"])
            wanted += [int(tensor) for tensor in operator["inputs"] if int(tensor) not in given]
    return taken


def _spec(detail: Mapping[str, Any]) -> TensorSpec:
    dtype = np.dtype(detail["dtype"])
    if dtype.kind in "SUO":
        raise InputError(
            f"input {detail['name']!r} is text, which LiteRT's interpreter cannot take from arrays",
            hint="export the model without its text processing",
            code="unsupported_type",
        )
    signature = detail["shape_signature"] if len(detail["shape_signature"]) else detail["shape"]
    return TensorSpec(str(detail["name"]), dtype.name, tuple(None if dim < 0 else int(dim) for dim in signature))
