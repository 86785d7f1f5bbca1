"""Run hardware tests: choose the suite of each, and keep its readings."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from prony.kinds.hardware.readings import headline_metric, reading_frame
from prony.kinds.hardware.schema import HardwareWorkload
from prony.model.result import Effective, Repetition
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.context import RunContext
from prony.runner.folder import ResultFolder, write_frame
from prony.runner.host import EngineHost
from prony.runner.suites import SuiteJob, SuiteRunner

_GIVEN = {"library", "shapes", "layers", "precisions", "threads", "path", "seed"}
# By test and library: the engine whose process runs it, and the suite. The null engine is a bare Python with numpy.
_PLAIN, _TORCH = "null", "torch"
_SUITES = {
    ("cpu-memory", "numpy"): (_PLAIN, "prony.kinds.hardware.child.memory:MemorySuite"),
    ("cpu-memory", "torch"): (_TORCH, "prony.kinds.hardware.child.memory:MemorySuite"),
    ("cpu-gemm", "numpy"): (_PLAIN, "prony.kinds.hardware.child.numpy_gemm:NumpyGemmSuite"),
    ("cpu-gemm", "torch"): (_TORCH, "prony.kinds.hardware.child.torch_gemm:TorchGemmSuite"),
    ("disk", ""): (_PLAIN, "prony.kinds.hardware.child.disk:DiskSuite"),
    ("gpu-memory", ""): (_TORCH, "prony.kinds.hardware.child.gpu:GpuMemorySuite"),
    ("gpu-gemm", ""): (_TORCH, "prony.kinds.hardware.child.torch_gemm:TorchGemmSuite"),
    ("gpu-transfer", ""): (_TORCH, "prony.kinds.hardware.child.gpu:GpuTransferSuite"),
    ("gpu-launch", ""): (_TORCH, "prony.kinds.hardware.child.gpu:GpuLaunchSuite"),
    ("gpu-collective", ""): (_TORCH, "prony.kinds.hardware.child.collective:GpuCollectiveSuite"),
}


class HardwareJob(SuiteJob):
    """One test's way through the runner."""

    def order(self) -> ChildOrder:
        work, measure = self.job.work(HardwareWorkload), self.job.measure
        options = work.model_dump(mode="json", include=_GIVEN)
        unit = work.unit if work.is_of_gpu else "cpu"
        options |= {"unit": unit, "size": work.size, "time_ns": work.time}
        warmup = None if measure.warmup == "auto" else int(measure.warmup)
        return ChildOrder(
            op="tests", suite=self.suite, unit=unit, options=options, warmup=warmup, max_time_ns=work.time
        )  # fmt: skip

    def keep(self, repetition: Repetition, readings: Sequence[Message]) -> list[float]:
        write_frame(self.folder.requests_part(repetition.index), reading_frame(repetition.index, readings))
        is_of_gpu = self.job.work(HardwareWorkload).is_of_gpu
        metric = headline_metric([one["metric"] for one in readings], is_of_gpu=is_of_gpu)
        return [max(median(one["values"]) for one in readings if one["metric"] == metric)] if metric else []

    def effective(self, host: EngineHost, facts: Message) -> Effective:
        told = dict(facts)
        device, threads = told.pop("device"), told.pop("threads", None)
        return Effective(
            engine=self.job.work(HardwareWorkload).tool or "none",
            engine_version=told.pop("version", host.hello["version"]),
            python=host.hello["python_version"], device=device, precision="",
            threads=int(threads) if threads else None, details=told,
        )  # fmt: skip


def suite_of(work: HardwareWorkload) -> tuple[str, str]:
    """Return the engine whose process runs a test, and the suite."""
    return _SUITES.get((work.test, work.library)) or _SUITES[work.test, ""]


def make_hardware_job(folder: ResultFolder, runner: SuiteRunner) -> HardwareJob:
    """Choose the suite of a test, and see that its engine starts."""
    engine, suite = suite_of(folder.job.work(HardwareWorkload))
    runner.host(engine)
    return HardwareJob(folder, engine, suite)


def hardware_runner(context: RunContext) -> SuiteRunner:
    """Return what runs hardware tests."""
    return SuiteRunner(context, make_hardware_job)
