"""Measure a GPU by PyTorch: its memory, the way to and from the host, and what starting work on it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from prony.errors import SutError
from prony.kinds.hardware.child.torch_device import FREE_SHARE, TorchDevice
from prony.ports.engine import Engine
from prony.runner.child.readings import SuiteTest, rate_of

_USUAL_BYTES = 2 * 2**30
_TRANSFER_BYTES = 256 * 2**20
_ITEM = 4
_CACHED_CALLS = 100
_LEAST_CACHES = 8
_SCALE = 3.0
_LAUNCHES = 500
_ALLOCATED = 64 * 2**20


class GpuMemorySuite:
    """Copy, triad, read and write in arrays far larger than the cache, and a copy that stays in the cache."""

    settles = True

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self._device = TorchDevice.of(engine, str(options.get("unit") or "cuda"))
        self.device_id = self._device.card
        self._seed = int(options.get("seed", 0))
        room = int(FREE_SHARE * self._device.free_bytes() / 3)
        self._bytes = min(int(options.get("size") or _USUAL_BYTES), room) // 256 * 256

    def tests(self) -> Iterator[SuiteTest]:
        torch, name, size = self._device.torch, self._device.name, self._bytes
        seeded = torch.Generator(device=name).manual_seed(self._seed)
        b, c = (torch.randn(size // _ITEM, generator=seeded, device=name) for _ in range(2))
        a, total = torch.empty_like(b), torch.empty((), device=name)
        sampler = self._device.sampler
        yield SuiteTest("copy_gb_s", "", sampler(lambda: a.copy_(b)), rate_of(2 * size))
        yield SuiteTest(
            "triad_gb_s", "", sampler(lambda: torch.add(b, c, alpha=_SCALE, out=a)), rate_of(3 * size)
        )  # fmt: skip
        yield SuiteTest("read_gb_s", "", sampler(lambda: torch.sum(b, dim=0, out=total)), rate_of(size))
        yield SuiteTest("write_gb_s", "", sampler(lambda: a.fill_(_SCALE)), rate_of(size))
        half = self._device.cache_bytes() // 8 // _ITEM
        if half:
            small, other = b[:half], a[:half]
            replay = self._device.capture(lambda: other.copy_(small), _CACHED_CALLS)
            sample = sampler(replay, _CACHED_CALLS)
            yield SuiteTest("cache_copy_gb_s", "", sample, rate_of(2 * half * _ITEM))

    def facts(self) -> Mapping[str, str]:
        cache, told = self._device.cache_bytes(), f"{self._bytes / 1e6:.0f} MB"
        if cache:
            told += f", {self._bytes / cache:.0f} times the L2 cache"
        if self._bytes < _LEAST_CACHES * cache:
            told += ": too small, the cache helps"
        return self._device.facts() | {
            "array": told, "data": f"seeded normal, seed {self._seed}",
            "counting": "bytes read plus bytes written: copy 2, triad 3, read and write 1 times the array",
            "cache copy": "within a quarter of the L2 cache, a graph of 100 copies",
        }  # fmt: skip

    def close(self) -> None:
        return None


class GpuTransferSuite:
    """Copies between the host and the card, from pinned and from pageable memory, and both ways at once."""

    settles = False

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self._device = TorchDevice.of(engine, str(options.get("unit") or "cuda"))
        self.device_id = self._device.card
        self._seed = int(options.get("seed", 0))
        self._bytes = int(options.get("size") or _TRANSFER_BYTES) // 256 * 256

    def tests(self) -> Iterator[SuiteTest]:
        torch, name, size = self._device.torch, self._device.name, self._bytes
        seeded = torch.Generator().manual_seed(self._seed)
        pageable = torch.randn(size // _ITEM, generator=seeded)
        pinned, back = pageable.pin_memory(), torch.empty_like(pageable, pin_memory=True)
        there, other = (torch.empty(size // _ITEM, device=name) for _ in range(2))
        there.copy_(pinned)
        back.copy_(there)
        self._device.wait()
        if not torch.equal(pageable, back):
            raise SutError(
                "the data that came back from the GPU differs from the data sent",
                code="wrong_output",
                hint="check the GPU and its memory: nvidia-smi -q, dmesg",
            )
        for memory, here in (("pinned", pinned), ("pageable", pageable)):
            operation = "" if memory == "pinned" else memory
            into, out_of = partial(_copy, there, here), partial(_copy, here, there)
            yield SuiteTest("host_to_device_gb_s", operation, self._device.time_with_wait(into), rate_of(size))
            yield SuiteTest("device_to_host_gb_s", operation, self._device.time_with_wait(out_of), rate_of(size))
        streams = [self._device.cuda.Stream() for _ in range(2)]

        def both() -> None:
            for stream, target, source in zip(streams, (there, back), (pinned, other), strict=True):
                with self._device.cuda.stream(stream):
                    target.copy_(source, non_blocking=True)

        yield SuiteTest("both_ways_gb_s", "", self._device.time_with_wait(both), rate_of(2 * size))

    def facts(self) -> Mapping[str, str]:
        return self._device.facts() | {
            "buffer": f"{self._bytes / 1e6:.0f} MB", "counting": "bytes in one direction; for both_ways, in both",
            "data": f"seeded normal, seed {self._seed}; the data that came back was compared",
        }  # fmt: skip

    def close(self) -> None:
        return None


def _copy(target: Any, source: Any) -> None:
    target.copy_(source, non_blocking=True)


class GpuLaunchSuite:
    """An empty kernel: queued, waited for, and as part of a graph; and memory, from the cache and from the driver."""

    settles = False

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self._device = TorchDevice.of(engine, str(options.get("unit") or "cuda"))
        self.device_id = self._device.card

    def tests(self) -> Iterator[SuiteTest]:
        cuda, wait = self._device.cuda, self._device.wait

        def launch() -> None:
            cuda._sleep(0)

        yield SuiteTest("launch_us", "", partial(_time_queued, launch, wait), _microseconds)
        yield SuiteTest("launch_waited_us", "", self._device.time_with_wait(launch), _microseconds)
        replay = self._device.capture(launch, _CACHED_CALLS)
        yield SuiteTest("graph_launch_us", "", self._device.sampler(replay, _CACHED_CALLS), _microseconds)
        yield SuiteTest("allocate_us", "", partial(self._time_allocations, False), _microseconds)
        yield SuiteTest("allocate_us", "driver", partial(self._time_allocations, True), _microseconds)

    def _time_allocations(self, empties: bool, count: int) -> list[int]:
        torch, taken = self._device.torch, []
        for _ in range(count):
            if empties:
                self._device.cuda.empty_cache()
                self._device.wait()
            begin_ns = time.perf_counter_ns()
            kept = torch.empty(_ALLOCATED, dtype=torch.uint8, device=self._device.name)
            taken.append(time.perf_counter_ns() - begin_ns)
            del kept
        return taken

    def facts(self) -> Mapping[str, str]:
        return self._device.facts() | {
            "kernel": "torch.cuda._sleep(0), which returns at once",
            "launch": f"queued {_LAUNCHES} times, without waiting",
            "graph": f"one launch of {_CACHED_CALLS} kernels, time per kernel", "allocation": "64 MiB",
        }  # fmt: skip

    def close(self) -> None:
        return None


def _microseconds(ns: float) -> float:
    return ns / 1e3


def _time_queued(launch: Callable[[], Any], wait: Callable[[], Any], count: int) -> list[int]:
    """Return what queueing one launch takes, of each of so many batches that begin with an idle device."""
    taken = []
    for _ in range(count):
        wait()
        begin_ns = time.perf_counter_ns()
        for _ in range(_LAUNCHES):
            launch()
        taken.append((time.perf_counter_ns() - begin_ns) // _LAUNCHES)
    wait()
    return taken
