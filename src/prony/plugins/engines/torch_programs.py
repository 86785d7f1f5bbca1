"""Load PyTorch model files, exported programs or TorchScript, with the inputs they declare."""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from prony.errors import InputError, NotFoundError
from prony.ports.engine import UNKNOWN_RANK, TensorSpec

# What PyTorch's readers raise for a file that is damaged or something else altogether.
_UNREADABLE = (
    RuntimeError, ValueError, KeyError, AssertionError, OSError, zipfile.BadZipFile, pickle.UnpicklingError,
)  # fmt: skip
Call = tuple[tuple[Any, ...], dict[str, Any]]


class Program(Protocol):
    """`module` is what is called; `numbers` are the inputs that it takes as plain Python numbers."""

    module: Any
    numbers: frozenset[str]

    def specs(self) -> list[TensorSpec]: ...

    def arrange(self, values: Mapping[str, Any]) -> Call:
        """Return the arguments of the module's call."""


def read_program(torch: Any, path: str, device: str) -> Program:
    """Read a file by its ending; nothing is ever unpickled that the format itself does not need."""
    if not Path(path).exists():
        raise NotFoundError(f"model not found: {path}", hint="check workload.model")
    try:
        if path.endswith(".pt2"):
            return _load_exported(torch, path, device)
        module = torch.jit.load(path, map_location=device).eval()
    except _UNREADABLE as exc:
        raise InputError(
            f"{path} is neither an exported program nor TorchScript: {exc}",
            hint="write it with torch.export.save (.pt2) or torch.jit.save (.pt); a bare state_dict is not a model",
            code="model_invalid",
        ) from exc
    return Script(module)


def _load_exported(torch: Any, path: str, device: str) -> Exported:
    program = torch.export.load(path)
    if device != "cpu":
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, device)
    return Exported(torch, program)


class Exported:
    """An exported program: it records types, shapes and how its arguments nest."""

    def __init__(self, torch: Any, program: Any) -> None:
        self._torch = torch
        self._program = program
        self._arguments = [item.arg for item in program.graph_signature.input_specs if item.kind.name == "USER_INPUT"]
        self.module = program.module()
        self.numbers = frozenset(
            argument.name for argument in self._arguments if type(argument).__name__ == "SymIntArgument"
        )

    def specs(self) -> list[TensorSpec]:
        values = {node.name: node.meta.get("val") for node in self._program.graph.nodes if node.op == "placeholder"}
        examples = self._examples()
        dims = {name: _dims(value) for name, value in values.items() if hasattr(value, "shape")}
        firsts = {dims[argument.name][0] for argument in self._arguments if dims.get(argument.name)}
        bounds = self._bounds()
        specs = []
        for argument in self._placeholders():
            name = argument.name
            if name in self.numbers:
                specs.append(TensorSpec(name, "int64", ()))
                continue
            sizes = _suggest_sizes(dims[name], examples.get(name), firsts)
            below, source = bounds.get(name, (None, ""))
            specs.append(TensorSpec(name, dtype_name(values[name].dtype), dims[name], below, source, sizes))
        return specs

    def _placeholders(self) -> list[Any]:
        return [argument for argument in self._arguments if type(argument).__name__ != "ConstantArgument"]

    def _examples(self) -> dict[str, Any]:
        """Return what it was exported with, by name; {} where the file does not hold it."""
        flat = self._torch.utils._pytree.tree_leaves(self._program.example_inputs or ())
        return dict(zip([argument.name for argument in self._arguments], flat, strict=False))

    def _bounds(self) -> dict[str, tuple[int, str]]:
        """Return the rows of the embedding that an input indexes."""
        found: dict[str, tuple[int, str]] = {}
        for node in self._program.graph.nodes:
            if str(node.target).startswith("aten.embedding") and len(node.args) > 1:
                table, index = node.args[:2]
                found[index.name] = (int(table.meta["val"].shape[0]), f"rows of {table.name}")
        return found

    def arrange(self, values: Mapping[str, Any]) -> Call:
        flat = [
            argument.value if type(argument).__name__ == "ConstantArgument" else values[argument.name]
            for argument in self._arguments
        ]
        args, kwargs = self._torch.utils._pytree.tree_unflatten(flat, self._program.call_spec.in_spec)
        return tuple(args), dict(kwargs)


def _dims(value: Any) -> tuple[int | str | None, ...]:
    return tuple(dim if isinstance(dim, int) else str(dim) for dim in value.shape)


def _suggest_sizes(dims: tuple[Any, ...], example: Any, firsts: set[Any]) -> dict[int, tuple[int, str]]:
    """Return the example's sizes for dynamic axes; never for one that may be the batch, which the recipe decides."""
    if example is None or not hasattr(example, "shape"):
        return {}
    return {
        position: (int(example.shape[position]), "model: the example it was exported with")
        for position, dim in enumerate(dims)
        if isinstance(dim, str) and dim not in firsts
    }


def dtype_name(dtype: Any) -> str:
    """Return numpy's name of a type of PyTorch; its own where numpy has none."""
    name = str(dtype).removeprefix("torch.")
    return {"float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2"}.get(name, name)


@dataclass
class Script:
    """A TorchScript module: it records the names of its arguments, but neither shapes nor types of tensors."""

    module: Any

    def __post_init__(self) -> None:
        declared = self.module.forward.schema.arguments[1:]
        self._arguments = [argument for argument in declared if not argument.has_default_value()]
        kinds = {argument.name: str(argument.type) for argument in self._arguments}
        self.numbers = frozenset(name for name, kind in kinds.items() if kind in ("int", "float", "bool"))

    def specs(self) -> list[TensorSpec]:
        bounds = self._bounds()
        return [self._spec(argument, bounds) for argument in self._arguments]

    def _spec(self, argument: Any, bounds: Mapping[str, int]) -> TensorSpec:
        name, kind = str(argument.name), str(argument.type)
        if name in self.numbers:
            return TensorSpec(name, {"int": "int64", "float": "float64", "bool": "bool"}[kind], ())
        if kind not in ("Tensor", "Optional[Tensor]"):
            raise InputError(
                f"input {name!r} is a {kind}, but Prony supports only tensors and numbers",
                hint="export the model with plain tensors as inputs",
                code="unsupported_type",
            )
        if name in bounds:
            return TensorSpec(name, "int64", UNKNOWN_RANK, bounds[name], "rows of the embedding")
        # The file does not say; what is indexed, counted or masked is whole by every exporter's habit.
        whole = re.search(r"ids$|mask|tokens|lengths?$", name)
        return TensorSpec(name, "int64" if whole else "float32", UNKNOWN_RANK)

    def _bounds(self) -> dict[str, int]:
        """Return the rows of the embedding that an input indexes, followed through the module's attributes."""
        graph = self.module.inlined_graph
        names = [value.debugName() for value in graph.inputs()]
        declared = [argument.name for argument in self.module.forward.schema.arguments]
        holders: dict[str, Any] = {names[0]: self.module}
        bounds: dict[str, int] = {}
        for node in graph.nodes():
            inputs = [value.debugName() for value in node.inputs()]
            if node.kind() == "prim::GetAttr" and inputs[0] in holders:
                holders[node.output().debugName()] = getattr(holders[inputs[0]], node.s("name"))
            elif node.kind() == "aten::embedding" and inputs[0] in holders and inputs[1] in names:
                bounds[declared[names.index(inputs[1])]] = int(holders[inputs[0]].shape[0])
        return bounds

    def arrange(self, values: Mapping[str, Any]) -> Call:
        return (), {argument.name: values[argument.name] for argument in self._arguments}
