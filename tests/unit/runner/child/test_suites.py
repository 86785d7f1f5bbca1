"""Suites of hardware tests in this process: what is sampled, counted and left behind."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from prony.errors import CapacityError
from prony.kinds.hardware.child.collective import GpuCollectiveSuite
from prony.kinds.hardware.child.disk import DiskSuite
from prony.kinds.hardware.child.memory import MemorySuite, read_size
from prony.kinds.hardware.child.numpy_gemm import NumpyGemmSuite
from prony.kinds.hardware.child.shapes import count_operations, fits_in, shapes_of
from prony.kinds.hardware.child.torch_device import TorchDevice
from prony.ports.engine import Engine
from prony.runner.child.loop import Stop
from prony.runner.child.readings import SuiteTest, rate_of, take_reading

PAGE = 4096


def test_a_reading_leaves_its_warm_up_out_and_keeps_every_sample_in_order() -> None:
    numbers = count(1)
    test = SuiteTest("copy_gb_s", "", lambda wanted: [next(numbers) for _ in range(wanted)], float)
    reading = take_reading(test, 0, Stop())
    assert reading["values"] == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert (reading["metric"], reading["operation"]) == ("copy_gb_s", "")


def test_a_stop_ends_a_reading_before_its_next_sample() -> None:
    stop = Stop()
    stop.asked = True
    assert take_reading(SuiteTest("copy_gb_s", "", lambda wanted: [1] * wanted, float), 10**9, stop)["values"] == []


def test_bytes_by_nanoseconds_are_gigabytes_a_second() -> None:
    assert rate_of(2 * 10**9)(10**9) == 2.0


def test_quick_shapes_are_squares_and_a_gpu_begins_with_a_large_one() -> None:
    assert shapes_of({}, "cpu") == [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)]
    assert shapes_of({}, "gpu")[0] == (8192, 8192, 8192)


def test_a_search_tries_the_same_shapes_for_one_seed_and_others_for_another() -> None:
    tried = shapes_of({"shapes": "search", "seed": 3}, "gpu")
    assert tried == shapes_of({"shapes": "search", "seed": 3}, "gpu")
    assert tried != shapes_of({"shapes": "search", "seed": 4}, "gpu")
    assert len(tried) == 200
    assert {size % 1024 for shape in tried for size in shape} == {0}


def test_shapes_of_a_model_are_its_layers() -> None:
    assert shapes_of({"shapes": "model", "layers": ["2x3x4"]}, "gpu") == [(2, 3, 4)]
    assert count_operations((2, 3, 4)) == 48.0


def test_what_has_no_room_in_the_free_memory_is_not_tried() -> None:
    assert fits_in((1000, 1000, 1000), 2, 8e6)
    assert not fits_in((1000, 1000, 1000), 2, 7.9e6)


@pytest.mark.parametrize(("text", "size"), [("33792K\n", 33792 * 1024), ("32M", 32 * 2**20), ("64", 64)])
def test_sizes_of_caches_are_read_as_the_kernel_writes_them(text: str, size: int) -> None:
    assert read_size(text) == size


def test_products_of_numpy_are_read_in_each_format_and_the_others_left_out() -> None:
    options = {"layers": ["16x16x16"], "precisions": ["fp32", "fp64", "bf16"]}
    suite = NumpyGemmSuite(options, None)
    names = [(one.metric, one.operation) for one in suite.tests()]
    assert names == [("gemm_fp32_tflops", "16x16x16"), ("gemm_fp64_tflops", "16x16x16")]
    assert suite.facts()["bf16 left out"] == "is not a format of numpy's BLAS"


def test_memory_is_read_by_all_processes_first_and_then_by_fewer() -> None:
    suite = MemorySuite({"size": 2**20}, None)
    seen = []
    for one in suite.tests():
        seen.append((one.metric, one.operation))
        assert all(ns > 0 for ns in one.sample(2))
    assert seen[0] == ("copy_gb_s", "")
    assert suite.facts()["array"].startswith("1 MB")
    assert {operation for _, operation in seen if operation} <= {f"threads={2**power}" for power in range(10)}
    suite.close()


def test_a_disk_is_written_and_read_and_its_file_removed(tmp_path: Path) -> None:
    suite = DiskSuite({"path": str(tmp_path), "size": 2**20}, None)
    names = []
    for one in suite.tests():
        names.append(f"{one.metric} {one.operation}".strip())
        (taken,) = one.sample(1)
        assert one.value_of(taken) > 0
    suite.close()
    assert names == [
        "write_mb_s", "read_mb_s", "random_read_iops", "random_write_iops", "random_read_iops queue=32",
        "random_write_iops queue=32",
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    assert suite.facts()["page cache"].startswith(("bypassed", "not bypassed: "))


def test_a_folder_that_is_not_there_or_has_no_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match="folder not found"):
        DiskSuite({"path": str(tmp_path / "gone")}, None)
    with pytest.raises(CapacityError, match="MB free, but the test file needs"):
        DiskSuite({"path": str(tmp_path), "size": 2**60}, None)


class Card:
    """As much of PyTorch as a sum over two cards needs; each call takes the second card 3 ms and the first 1 ms."""

    def __init__(self, cards: int) -> None:
        self.count, self.now_ms = cards, [0.0] * cards
        self.cuda = self.nccl = self

    def device_count(self) -> int:
        return self.count

    def ones(self, size: int, device: str) -> np.ndarray[Any, Any]:
        assert device.startswith("cuda:")
        return np.ones(min(size, 8))

    empty_like = staticmethod(np.empty_like)

    def all_reduce(self, inputs: list[Any], outputs: list[Any]) -> None:
        for index, one in enumerate(outputs):
            one[:] = sum(inputs)
            self.now_ms[index] += 1 + 2 * index

    def synchronize(self, index: int) -> None:
        assert index < self.count

    def current_stream(self, index: int) -> int:
        return index

    def Event(self, *, enable_timing: bool) -> Mark:  # noqa: N802
        assert enable_timing
        return Mark(self)


class Mark:
    def __init__(self, card: Card) -> None:
        self.card, self.at_ms = card, 0.0

    def record(self, stream: int) -> None:
        self.at_ms = self.card.now_ms[stream]

    def elapsed_time(self, later: Mark) -> float:
        return later.at_ms - self.at_ms


def sums_over(cards: int, monkeypatch: pytest.MonkeyPatch) -> GpuCollectiveSuite:
    device = TorchDevice(Card(cards), "cuda:0", "GPU-first")
    monkeypatch.setattr(TorchDevice, "of", lambda *_: device)
    return GpuCollectiveSuite({}, cast(Engine, None))


def test_sums_over_two_cards_take_as_long_as_the_slower_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = list(sums_over(2, monkeypatch).tests())
    assert [(one.metric, one.operation) for one in tests] == [
        ("all_reduce_gb_s", ""), ("all_reduce_gb_s", "32MiB"), ("all_reduce_gb_s", "1MiB"), ("all_reduce_us", ""),
    ]  # fmt: skip
    assert tests[0].sample(2) == [3_000_000, 3_000_000]
    assert tests[0].value_of(2**30) == 1.0  # of two cards each sends and receives as much as it has
    assert tests[-1].value_of(3_000_000) == 3000.0


def test_sums_over_one_card_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CapacityError, match="gpu-collective needs two GPUs, but PyTorch sees 1"):
        sums_over(1, monkeypatch)


_BY_TORCH = """
import json
from prony.kinds.hardware.child.memory import MemorySuite
from prony.kinds.hardware.child.torch_gemm import TorchGemmSuite
from prony.plugins.engines.torch import Torch
made = MemorySuite({"size": 2**20, "threads": 1, "library": "torch"}, Torch())
read = {one.metric: one.sample(2) for one in made.tests()}
made.close()
suite = TorchGemmSuite({"unit": "cpu", "layers": ["32x32x32"]}, Torch())
read |= {one.metric: one.sample(2) for one in suite.tests()}
print(json.dumps([read, dict(suite.facts())]))
"""


@pytest.mark.slow
@pytest.mark.needs_torch
def test_pytorch_reads_triad_and_products_in_every_format_that_runs_on_the_cpu(torch_python: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[4] / "src")}
    command = [torch_python, "-W", "ignore", "-c", _BY_TORCH]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    read, facts = json.loads(done.stdout)
    assert {"copy_gb_s", "triad_gb_s", "gemm_fp32_tflops", "gemm_fp64_tflops", "gemm_bf16_tflops"} <= set(read)
    assert not {"gemm_tf32_tflops", "gemm_fp8_tflops"} & set(read)
    assert all(ns > 0 for taken in read.values() for ns in taken)
    assert facts["device"] == "CPU"
