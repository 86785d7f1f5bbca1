"""Are the answers right? The same model and inputs on the plainest engine in float32, compared with the job's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from prony.model.result import OutputCheck
from prony.ports import plugins
from prony.runner.child.compare import compare
from prony.runner.child.outputs import read_outputs
from prony.runner.child.wire import ChildOrder, Message


@cache
def reference_engines() -> Mapping[str, str]:
    """Return which engine says that it is the reference, by the ending of a model file; the first by name has it."""
    found: dict[str, str] = {}
    for name in plugins.find_plugins(plugins.ENGINES):
        try:
            engine = plugins.load(plugins.ENGINES, name)
        except ImportError:  # nothing is compared with an engine that is not whole
            continue
        for ending in getattr(engine, "reference_formats", ()):
            found.setdefault(ending, name)
    return found


def reference_engine(path: Path) -> str | None:
    return reference_engines().get(path.suffix.lower())


def is_reference(engine: str, unit: str, precision: str, path: Path) -> bool:
    """Is the job itself what its answers would be compared with?"""
    return engine == reference_engine(path) and unit == "cpu" and precision in ("default", "fp32")


def reference_order(order: ChildOrder, outputs: Path) -> ChildOrder:
    """Return the order that computes the reference: float32 on the CPU, nothing timed, no engine options."""
    return replace(
        order, op="outputs", unit="cpu", precision="fp32", options={}, samples="", outputs=str(outputs), profile=False
    )


def own_check(done: Message, engine: str) -> OutputCheck:
    return OutputCheck(
        finite=done["finite"],
        reference=f"{engine} fp32 on cpu",
        is_reference=True,
        compared=False,
        outputs=done["outputs"],
        note="this job is the reference",
    )


def unchecked_outputs(done: Message, note: str) -> OutputCheck:
    return OutputCheck(finite=done["finite"], reference="", compared=False, outputs=done["outputs"], note=note)


def compare_outputs(
    done: Message, reference: Message, engine: str, outputs: Path, reference_outputs: Path
) -> OutputCheck:
    """Compare what two children saved."""
    fed, reference_fed = _fed_inputs(done), _fed_inputs(reference)
    if fed != reference_fed:
        return unchecked_outputs(
            done, f"not compared: {engine} was fed other inputs ({reference_fed} instead of {fed})"
        )
    found = compare(read_outputs(str(outputs)), read_outputs(str(reference_outputs)))
    return OutputCheck.read(
        {"reference": f"{engine} fp32 on cpu", "outputs": done["outputs"]} | found | {"finite": done["finite"]}
    )


def _fed_inputs(message: Message) -> dict[str, Any]:
    return {item["name"]: item["sha256"][:12] for item in message["inputs"]}
