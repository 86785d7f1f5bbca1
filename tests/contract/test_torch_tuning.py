"""A kernel that is broken costs no repetition where PyTorch tries many: asked of PyTorch itself, without a card."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def seen(torch_python: str) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    environment.pop("TORCHINDUCTOR_AUTOTUNE_IN_SUBPROC", None)
    command = [torch_python, "-W", "ignore", str(Path(__file__).with_name("torch_tuning.py"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.needs_torch
class TestTuning:
    def test_kernels_are_tried_in_another_process(self, seen: dict[str, Any]) -> None:
        assert seen["apart"] is True

    def test_the_environment_can_say_otherwise(self, seen: dict[str, Any]) -> None:
        assert seen["apart where the environment says no"] is False

    def test_a_kernel_that_breaks_its_process_costs_no_other_kernel(self, seen: dict[str, Any]) -> None:
        (good, first), (refused, second), (broken, third), (last, fourth) = seen["tried"]
        assert (good, refused, broken, last) == (1.5, math.inf, math.inf, 2.5)
        assert first == second, "an ordinary error breaks nothing"
        assert second != third == fourth

    def test_what_tried_kernels_has_ended_before_anything_is_timed(self, seen: dict[str, Any]) -> None:
        assert seen["ended"] == [True]
        assert seen["pools"] == 0

    def test_a_broken_kernel_that_was_chosen_is_named_with_what_to_do(self, seen: dict[str, Any]) -> None:
        assert "used memory that it does not own" in seen["broken"]["message"]
        assert "options.mode: compile" in seen["broken"]["hint"]

    def test_another_error_stays_what_it_is(self, seen: dict[str, Any]) -> None:
        assert seen["other"] == "CUDA out of memory"
