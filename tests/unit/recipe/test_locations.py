"""Where the timed calls of a model find their inputs and leave their outputs, as a recipe says it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from prony.kinds.model.schema import ModelWorkload

WORK = {"kind": "model", "model": "zoo:mlp", "engine": "torch", "unit": "cuda"}


@pytest.mark.parametrize(
    ("written", "inputs", "outputs"),
    [
        ({}, "device", "device"),
        ({"inputs": "host", "outputs": "host"}, "host", "host"),
        ({"inputs": {"at": "host", "seed": 3}}, "host", "device"),
        ({"inputs": "device"}, "device", "device"),
    ],
)
def test_inputs_and_outputs_have_a_place(written: dict[str, object], inputs: str, outputs: str) -> None:
    work = ModelWorkload.model_validate(WORK | written)
    assert (work.inputs.at, work.outputs) == (inputs, outputs)
    assert ModelWorkload.model_validate_json(work.model_dump_json()) == work


@pytest.mark.parametrize("written", [{"inputs": "pinned"}, {"outputs": "cpu"}, {"inputs": {"at": "gpu"}}])
def test_another_place_is_refused(written: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="'device' or 'host'"):
        ModelWorkload.model_validate(WORK | written)
