"""The options of `prony hardware` become a recipe."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import Any

import pytest

from prony.app.hardware_recipe import draft_hardware_recipe
from prony.cli.commands import hardware
from prony.cli.run_written import run_written
from prony.errors import InputError
from prony.recipe import loads


def options(*words: str) -> Namespace:
    parser = ArgumentParser()
    hardware.arguments(parser)
    return parser.parse_args(words)


def draft(given: Namespace, units: list[str], library: str = "numpy") -> dict[str, Any]:
    return draft_hardware_recipe(hardware.request_hardware(given, units, library))


def titles(given: Namespace, units: list[str]) -> list[str]:
    text = json.dumps(draft(given, units))
    return [job.title for job in loads(text, "json", "the options", []).jobs("e1")]


def test_a_machine_without_a_gpu_has_three_tests() -> None:
    assert titles(options(), ["cpu", "disk"]) == ["test=cpu-memory", "test=cpu-gemm", "test=disk"]


@pytest.mark.parametrize("word", ["--detach", "--priority=3"])
def test_what_only_a_server_can_do_is_refused_here(word: str) -> None:
    given = options("--unit", "disk", word)
    with pytest.raises(InputError, match="need a server"):
        run_written(draft(given, ["disk"]), given, is_remote=False)


def test_each_card_is_tested_and_what_is_no_cards_once() -> None:
    found = titles(options(), ["disk", "cuda-0", "cuda-1"])
    assert found.count("test=disk, unit=cuda-0") == 1
    assert [title for title in found if "gpu-gemm" in title] == [
        "test=gpu-gemm, unit=cuda-0",
        "test=gpu-gemm, unit=cuda-1",
    ]
    assert [title for title in found if "gpu-collective" in title] == ["test=gpu-collective, unit=cuda-0"]
    assert len(found) == 1 + 2 * 4 + 1


def test_only_the_tests_that_are_named_are_run() -> None:
    assert titles(options("--test", "disk"), ["cpu", "disk"]) == ["test=disk"]
    assert titles(options("--test", "gpu-collective"), ["cuda"]) == ["test=gpu-collective"]
    with pytest.raises(InputError, match="has none of these tests"):
        titles(options("--test", "disk"), ["cuda"])


def test_layers_are_the_shapes_of_a_model() -> None:
    made = draft(options("--layer", "2x3x4", "--size", "1MiB"), ["cpu"], "torch")
    assert made["workload"] == {
        "kind": "hardware", "library": "torch", "shapes": "model", "layers": ["2x3x4"], "size": "1MiB",
    }  # fmt: skip
