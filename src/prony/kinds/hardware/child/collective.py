"""Measure how fast all GPUs of a machine add up what each of them has, by NCCL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from prony.errors import CapacityError, SutError
from prony.kinds.hardware.child.torch_device import TorchDevice
from prony.ports.engine import Engine
from prony.runner.child.readings import SuiteTest, rate_of

# The first is the one that stands for the test; the smallest tells the latency.
_LARGE, _SIZES = 2**30, {"32MiB": 2**25, "1MiB": 2**20}
_SMALL = 2**16
_ITEM = 4


def check_gpu_count(count: int) -> None:
    """Refuse fewer GPUs than can exchange anything."""
    if count < 2:
        raise CapacityError(
            f"gpu-collective needs two GPUs, but PyTorch sees {count}",
            hint="skip this test, or check whether CUDA_VISIBLE_DEVICES hides GPUs",
            code="unit_unavailable",
        )


class GpuCollectiveSuite:
    """All-reduce over every GPU that PyTorch sees, in one process."""

    settles = False

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self._device = TorchDevice.of(engine, str(options.get("unit") or "cuda"))
        self.device_id = self._device.card
        self._size = int(options.get("size") or _LARGE) // 256 * 256
        self._count = int(self._device.cuda.device_count())
        check_gpu_count(self._count)

    def tests(self) -> Iterator[SuiteTest]:
        self._check_sum()
        # What each card sends and receives, whatever their number, as NCCL's own tests count.
        share = 2 * (self._count - 1) / self._count
        for operation, size in ({"": self._size} | _SIZES).items():
            yield SuiteTest("all_reduce_gb_s", operation, self._sampler(size), rate_of(share * size))
        yield SuiteTest("all_reduce_us", "", self._sampler(_SMALL), lambda ns: ns / 1e3)

    def _check_sum(self) -> None:
        inputs, outputs = self._buffers(_SMALL)
        self._reduce(inputs, outputs)
        self._wait()
        if any(float(one.min()) != self._count or float(one.max()) != self._count for one in outputs):
            raise SutError(
                "the GPUs returned a wrong sum",
                code="wrong_output",
                hint="check the GPUs and their links: nvidia-smi topo -m, dmesg",
            )

    def _buffers(self, size: int) -> tuple[list[Any], list[Any]]:
        torch, places = self._device.torch, [f"cuda:{index}" for index in range(self._count)]
        inputs = [torch.ones(size // _ITEM, device=place) for place in places]
        return inputs, [torch.empty_like(one) for one in inputs]

    def _reduce(self, inputs: list[Any], outputs: list[Any]) -> None:
        self._device.cuda.nccl.all_reduce(inputs, outputs)

    def _wait(self) -> None:
        for index in range(self._count):
            self._device.cuda.synchronize(index)

    def _sampler(self, size: int) -> partial[list[int]]:
        return partial(self._sample, *self._buffers(size))

    def _sample(self, inputs: list[Any], outputs: list[Any], count: int) -> list[int]:
        """Time each call by marks on every card; the slowest card counts."""
        marks = [self._mark()]
        for _ in range(count):
            self._reduce(inputs, outputs)
            marks.append(self._mark())
        self._wait()
        return [_slowest_ns(*pair) for pair in pairwise(marks)]

    def _mark(self) -> list[Any]:
        cuda, events = self._device.cuda, []
        for index in range(self._count):
            events.append(cuda.Event(enable_timing=True))
            events[-1].record(cuda.current_stream(index))
        return events

    def facts(self) -> Mapping[str, str]:
        cuda = self._device.cuda
        settings = {name: value for name, value in sorted(os.environ.items()) if name.startswith("NCCL_")}
        return self._device.facts() | settings | {
            "cards": ", ".join(cuda.get_device_name(index) for index in range(self._count)),
            "NCCL": ".".join(map(str, cuda.nccl.version())),
            "counting": "bus bandwidth: 2 (n - 1) / n times the buffer, divided by the time of the slowest GPU",
            "buffer": f"{self._size / 1e6:.0f} MB of fp32 on each GPU; all_reduce_us: 64 KiB",
        }  # fmt: skip

    def close(self) -> None:
        return None


def _slowest_ns(begins: list[Any], ends: list[Any]) -> int:
    spans_ms = [begin.elapsed_time(end) for begin, end in zip(begins, ends, strict=True)]
    return max(1, int(max(spans_ms) * 1e6))
