"""Run by the interpreter that has PyTorch: export small models, run them, print what was seen as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prony.errors import PronyError
from prony.plugins.engines.torch import Torch
from prony.ports.engine import LoadOptions
from prony.runner.child.inputs import make_inputs

WEIGHTS = torch.tensor([[1, 2, 3, 4], [0, -1, 0, 1], [0.5, 0.25, 0.125, 1]])
BIAS = torch.tensor([0.5, -1, 2])


class Dense(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.linear.weight.data, self.linear.bias.data = WEIGHTS.clone(), BIAS.clone()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Encoder(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(50, 4)

    def forward(self, input_ids: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = self.table(input_ids) * scale
        return {"sum": rows.sum(1), "count": torch.tensor(input_ids.shape[1], device=rows.device)}


class Scaled(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: torch.Tensor, factor: float, offset: int = 3) -> torch.Tensor:
        return x * factor + offset


def export_all(folder: Path) -> None:
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence")
    dense = torch.export.export(Dense(), (torch.randn(2, 4),), dynamic_shapes={"x": {0: batch}})
    torch.export.save(dense, folder / "dense.pt2")
    encoder = torch.export.export(
        Encoder(),
        (torch.zeros(2, 7, dtype=torch.int64), torch.tensor(2.0)),
        dynamic_shapes={"input_ids": {0: batch, 1: sequence}, "scale": None},
    )
    torch.export.save(encoder, folder / "encoder.pt2")
    torch.jit.script(Dense()).save(str(folder / "dense.pt"))
    torch.jit.script(Encoder()).save(str(folder / "encoder.pt"))
    torch.jit.script(Scaled()).save(str(folder / "scaled.pt"))
    torch.save(Dense().state_dict(), folder / "weights.pt")
    (folder / "broken.pt2").write_bytes((folder / "dense.pt2").read_bytes()[:500])


def attempt(
    path: Path,
    unit: str,
    precision: str = "default",
    batch: int = 3,
    options: dict[str, Any] | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Load, feed and run one model; return what was seen, or the error."""
    try:
        asked = LoadOptions(unit, 1, precision=precision, batch_size=batch, options=options or {})
        session = Torch().load(str(path), asked)
        specs = session.signature()
        recipe: dict[str, Any] = {"axes": {}, "shapes": {}, "values": {}, "seed": 0} | given
        made = make_inputs(specs, batch_size=batch, **recipe)
        call = session.bind({item.name: item.array for item in made})
        call()
        outputs = session.outputs(call())
    except PronyError as exc:
        return {"error": type(exc).__name__} | exc.to_dict()
    return {
        "specs": [[spec.name, spec.dtype, list(spec.shape), spec.below] for spec in specs],
        "shapes": {item.name: list(item.array.shape) for item in made},
        "sources": {item.name: item.shape_source for item in made},
        "fed": {item.name: item.array.tolist() for item in made},
        "outputs": {name: np.asarray(array, dtype=np.float64).tolist() for name, array in outputs.items()},
        "effect": asdict(session.effect()),
        "records_gradients": not torch.is_inference_mode_enabled(),
    }


def main(folder: Path, unit: str) -> dict[str, Any]:
    export_all(folder)
    info = Torch().probe()
    return {
        "version": Torch().preload(),
        "units": {each.name: list(each.precisions) for each in info.units},
        "dense.pt2": attempt(folder / "dense.pt2", unit),
        "dense.pt2 bf16": attempt(folder / "dense.pt2", unit, "bf16"),
        "dense.pt2 fp16": attempt(folder / "dense.pt2", unit, "fp16"),
        "dense.pt2 fp32": attempt(folder / "dense.pt2", unit, "fp32"),
        "dense.pt2 int8": attempt(folder / "dense.pt2", unit, "int8"),
        "encoder.pt2": attempt(folder / "encoder.pt2", unit),
        "dense.pt": attempt(folder / "dense.pt", unit),
        "dense.pt shaped": attempt(folder / "dense.pt", unit, shapes={"x": (3, 4)}),
        "encoder.pt": attempt(folder / "encoder.pt", unit, shapes={"input_ids": (3, 5), "scale": ()}),
        "scaled.pt": attempt(folder / "scaled.pt", unit, shapes={"x": (3, 2)}, values={"factor": {"constant": 2.5}}),
        "absent": attempt(folder / "dense.pt2", "cuda-7"),
        "weights.pt": attempt(folder / "weights.pt", unit),
        "broken.pt2": attempt(folder / "broken.pt2", unit),
        "missing.pt2": attempt(folder / "missing.pt2", unit),
        "graph": attempt(folder / "dense.pt2", unit, options={"mode": "graph"}),
        "mode": attempt(folder / "dense.pt2", unit, options={"mode": "fast"}),
        "typo": attempt(folder / "dense.pt2", unit, options={"moed": "eager"}),
        "attention": attempt(folder / "dense.pt2", unit, options={"attention": "flash"}),
        "switch": attempt(folder / "dense.pt2", unit, options={"deterministic": "yes"}),
        "chosen": attempt(folder / "dense.pt2", unit, options={"channels_last": True, "deterministic": True}),
    }


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(Path(sys.argv[1]), sys.argv[2])) + "\n")
