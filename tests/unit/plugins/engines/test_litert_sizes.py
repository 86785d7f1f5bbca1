"""A TFLite model that cannot be at the sizes of one that its file holds is allocated when it is fed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prony.errors import SutError
from prony.plugins.engines.litert import LiteRtSession
from prony.ports.engine import LoadOptions


class NarrowInterpreter:
    """Behaves as LiteRT's does with a model that needs four samples; `signature` is what the file says of its axes."""

    def __init__(self, signature: tuple[int, int]) -> None:
        self.shape, self.signature, self.fed = (1, 1), signature, False

    def get_input_details(self) -> list[dict[str, Any]]:
        shapes = {"shape": np.array(self.shape), "shape_signature": np.array(self.signature)}
        return [{"name": "x", "index": 0, "dtype": np.float32} | shapes]

    def resize_tensor_input(self, _: int, shape: list[int], *, strict: bool) -> None:
        assert strict
        self.shape = (shape[0], shape[1])

    def allocate_tensors(self) -> None:
        if self.shape[1] < 4:
            raise RuntimeError("failed to prepare")

    def set_tensor(self, _: int, array: np.ndarray[Any, Any]) -> None:
        self.fed = array.shape == self.shape

    def invoke(self) -> None:
        return


def test_open_axes_are_allocated_with_the_sizes_that_are_fed() -> None:
    interpreter = NarrowInterpreter((-1, -1))
    session = LiteRtSession(interpreter, "m.tflite", LoadOptions(unit="cpu", threads=1))
    session.allocate_if_known({})
    session.bind({"x": np.zeros((1, 8), dtype=np.float32)})
    assert interpreter.fed


def test_fixed_axes_that_do_not_work_fail_while_loading() -> None:
    session = LiteRtSession(NarrowInterpreter((1, 1)), "m.tflite", LoadOptions(unit="cpu", threads=1))
    with pytest.raises(SutError, match="cannot prepare"):
        session.allocate_if_known({})
