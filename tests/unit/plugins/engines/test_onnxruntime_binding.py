"""ONNX Runtime with inputs and outputs bound to a device; the CPU stands for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prony.errors import CapacityError
from prony.plugins.engines import onnxruntime as engine
from prony.plugins.engines.cuda_cards import find_cuda_card, list_cuda_cards
from prony.plugins.engines.onnxruntime import BoundCall, OnnxRuntime, OnnxSession
from prony.plugins.engines.onnxruntime_providers import CPU, ProviderUnit
from prony.ports.engine import CardCall, DeviceCall, LoadOptions

ort = pytest.importorskip("onnxruntime")
CARDS = ["GPU-aaa1", "GPU-aab2"]


def bound(**where: str) -> tuple[OnnxSession, Any, np.ndarray[Any, Any]]:
    """Return a session on a model that returns what it is fed, its bound call, and the array that it is fed."""
    options = LoadOptions("cuda", 1, **where)  # type: ignore[arg-type]
    unit = ProviderUnit("cuda", CPU, "the CPU in place of a card", tensors="cpu")
    session = OnnxSession(ort.InferenceSession(engine._IDENTITY, providers=[CPU]), "identity", unit, options, None)
    fed = np.asarray([3.0], dtype=np.float32)
    return session, session.bind({"x": fed}), fed


def test_a_bound_call_names_its_card_and_cannot_be_queued() -> None:
    session, call, _ = bound()
    assert isinstance(call, BoundCall)
    assert isinstance(call, CardCall)
    assert not isinstance(call, DeviceCall)
    assert session.outputs(call())["y"] == 3.0


def test_inputs_that_come_from_the_host_are_copied_in_every_call() -> None:
    session, call, fed = bound(inputs_at="host")
    call()
    fed[...] = 7.0
    assert session.outputs(call())["y"] == 7.0


class Steps:
    """A session, its binding and a value on a device, which keep the order in which they are asked."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def update_inplace(self, array: np.ndarray[Any, Any]) -> None:
        self.done.append(f"copy {array.size}")

    def run_with_iobinding(self, binding: Steps) -> None:
        assert binding is self
        self.done.append("run")

    def synchronize_outputs(self) -> None:
        self.done.append("wait")


def test_a_call_copies_what_it_must_runs_and_waits() -> None:
    steps = Steps()
    BoundCall(steps, steps, [], "GPU-aaa1")()
    assert steps.done == ["run", "wait"]
    BoundCall(steps, steps, [(steps, np.ones(4))], "GPU-aaa1")()
    assert steps.done == ["run", "wait", "copy 4", "run", "wait"]


@pytest.mark.parametrize(
    ("unit", "number"),
    [("cuda", 0), ("cuda-1", 1), ("tensorrt-1", 1), ("cuda-2", None), ("cuda:GPU-aab2", 1), ("cuda:aa", None)],
)
def test_a_card_is_found_by_its_number_or_uuid(unit: str, number: int | None) -> None:
    assert find_cuda_card(unit, CARDS) == number


class Build:
    """A build of ONNX Runtime for CUDA, as far as its list of providers goes."""

    def get_available_providers(self) -> list[str]:
        return ["CUDAExecutionProvider", CPU]


def test_several_cards_have_numbers_and_one_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "list_cuda_cards", lambda: CARDS)
    assert engine._find(Build(), "cuda").options == {}
    assert engine._find(Build(), "cuda-1").options == {"device_id": "1"}
    assert engine._find(Build(), "cuda:GPU-aaa1").options == {"device_id": "0"}
    with pytest.raises(CapacityError) as refused:
        engine._find(Build(), "cuda-2")
    assert refused.value.hint.startswith("available: cuda-0, cuda-1, cpu")
    monkeypatch.setattr(engine, "list_cuda_cards", lambda: CARDS[:1])
    with pytest.raises(CapacityError, match="no unit 'cuda-1'"):
        engine._find(Build(), "cuda-1")
    assert OnnxRuntime().preload() == ort.__version__


def test_a_machine_without_a_driver_has_no_cards() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a driver here")
    assert list_cuda_cards() == []
