"""A device as PyTorch drives it: its name, its free memory, and how work on it is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prony.errors import CapacityError
from prony.ports.engine import Engine, FindsDevice
from prony.runner.child.readings import time_by_wall

FREE_SHARE = 0.6  # of the free memory: what tests may use


@dataclass(frozen=True)
class TorchDevice:
    """`name` is torch's own, as `cuda:0`; `card` is the GPU's name by its driver, None of the CPU."""

    torch: Any
    name: str
    card: str | None

    @classmethod
    def of(cls, engine: Engine, unit: str) -> TorchDevice:
        """Return the device of a unit; a GPU that is not there is refused."""
        if not isinstance(engine, FindsDevice):
            text = f"the engine {engine.name} has no support for {unit}"
            raise CapacityError(text, hint="install torch: prony engines add torch", code="unit_unavailable")
        name, card = engine.find_device(unit)
        import torch

        if name.startswith("cuda"):
            torch.cuda.set_device(name)
        return cls(torch, name, card)

    @property
    def is_gpu(self) -> bool:
        return self.name != "cpu"

    @property
    def cuda(self) -> Any:
        return self.torch.cuda

    def free_bytes(self) -> int:
        return int(self.cuda.mem_get_info()[0])

    def cache_bytes(self) -> int:
        """Return the size of its L2 cache; 0 where this build of PyTorch does not tell."""
        return int(getattr(self.cuda.get_device_properties(self.name), "L2_cache_size", 0))

    def wait(self) -> None:
        if self.is_gpu:
            self.cuda.synchronize()

    def time_with_wait(self, launch: Callable[[], Any]) -> Callable[[int], list[int]]:
        """Return what samples a launch by the host's clock, until the device has done it."""

        def launch_and_wait() -> None:
            launch()
            self.wait()

        return time_by_wall(launch_and_wait)

    def facts(self) -> dict[str, str]:
        version = {"torch": str(self.torch.__version__)}
        if not self.is_gpu:
            return {"device": "CPU", "threads": str(self.torch.get_num_threads())} | version
        found = self.cuda.get_device_properties(self.name)
        return version | {
            "device": str(found.name), "multiprocessors": str(found.multi_processor_count),
            "compute capability": f"{found.major}.{found.minor}", "L2 cache": f"{self.cache_bytes() / 1e6:.0f} MB",
            "memory": f"{found.total_memory / 1e9:.0f} GB", "cuda": str(self.torch.version.cuda),
        }  # fmt: skip

    def sampler(self, launch: Callable[[], Any], calls: int = 1) -> Callable[[int], list[int]]:
        """Return what samples a launch that holds so many calls: by marks on a GPU, with no wait in between, so that
        the host does not hold it up; by the clock on the CPU."""
        return self._sampler_by_marks(launch, calls) if self.is_gpu else time_by_wall(launch)

    def _sampler_by_marks(self, launch: Callable[[], Any], calls: int) -> Callable[[int], list[int]]:
        cuda = self.cuda

        def sample(count: int) -> list[int]:
            marks = [cuda.Event(enable_timing=True) for _ in range(count + 1)]
            launch()  # so that the first mark is not the beginning of an idle time
            marks[0].record()
            for mark in marks[1:]:
                launch()
                mark.record()
            cuda.synchronize()
            spans_ms = [begin.elapsed_time(end) for begin, end in pairwise(marks)]
            return [max(1, int(span * 1e6 / calls)) for span in spans_ms]

        return sample

    def capture(self, work: Callable[[], Any], calls: int) -> Callable[[], Any]:
        """Return what replays so many calls as one graph."""
        cuda, aside = self.cuda, self.cuda.Stream()
        aside.wait_stream(cuda.current_stream())
        with cuda.stream(aside):
            work()
        cuda.current_stream().wait_stream(aside)
        cuda.synchronize()
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            for _ in range(calls):
                work()

        def replay() -> None:
            graph.replay()

        return replay
