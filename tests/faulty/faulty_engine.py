# ruff: noqa: ARG002
"""An engine that misbehaves on order: its model file says in which phase and how."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony.errors import CapacityError, InputError
from prony.ports.engine import (
    Array,
    DeviceMemory,
    Effect,
    EngineInfo,
    HostCopies,
    LoadOptions,
    Session,
    TensorSpec,
    Unit,
)


def _hang() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    ctypes.CDLL(None).pause()


def _eat_memory() -> None:
    eaten = []
    while True:
        eaten.append(np.ones(2**20))  # 8 MiB, touched


def _leave_a_grandchild() -> None:
    code = "import signal; signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", code])
    Path(os.environ["FAULTY_GRANDCHILD"]).write_text(str(child.pid))


def _flood() -> None:
    while True:
        os.write(2, b"la " * 2**18)


def _babble() -> None:
    """Write where nobody is meant to: to every descriptor that takes it."""
    for descriptor in range(3, 30):
        with suppress(OSError):
            os.write(descriptor, b"la la la\n")


def _crash() -> None:
    ctypes.string_at(0)


def _raise() -> None:
    raise RuntimeError("the vendor is unhappy")


def _refuse() -> None:
    raise InputError("this model is not for me", hint="take another")


def _no_unit() -> None:
    raise CapacityError("no such unit", code="unit_unavailable")


class PlannedClock:
    """Stands still but for what is planned, so that no number depends on what else a machine does."""

    def __init__(self) -> None:
        self.now_ns = time.perf_counter_ns()

    def __call__(self) -> int:
        return self.now_ns


def _keep_pace(times: float = 1.0) -> None:
    """Take as long as FAULTY_PACE_S says, give or take one per cent, by the clock of this process and by no other."""
    _plan_clock().now_ns += round(1e9 * times * float(os.environ["FAULTY_PACE_S"]) * random.uniform(0.99, 1.01))


def _plan_clock() -> PlannedClock:
    """Put a planned clock in the place of this process's own, once."""
    if not isinstance(time.perf_counter_ns, PlannedClock):
        setattr(time, "perf_counter_ns", PlannedClock())  # noqa: B010
    assert isinstance(time.perf_counter_ns, PlannedClock)
    return time.perf_counter_ns


def _version() -> str:
    return os.environ.get("FAULTY_VERSION", "1.0")


def _signal(number: int) -> Callable[[], None]:
    def kill() -> None:
        os.kill(os.getpid(), number)

    return kill


ACTIONS: dict[str, Callable[[], None]] = {
    "nothing": lambda: None,
    "hang": _hang,
    "slow": lambda: time.sleep(0.5),
    "pace": _keep_pace,
    "limp": lambda: _keep_pace(1.2),
    "flood": _flood,
    "babble": _babble,
    "memory": _eat_memory,
    "grandchild": _leave_a_grandchild,
    "raise": _raise,
    "refuse": _refuse,
    "nounit": _no_unit,
    "exit": lambda: os._exit(7),
    "segfault": _crash,
    "illegal": _signal(signal.SIGILL),
    "killed": _signal(signal.SIGKILL),
}


class PlannedDevice:
    """A device that works beside the host for a planned time, after the host took a planned time to queue the work.

    Both by the clock of this process and by no other.
    """

    device_id = ""

    def __init__(self, plan: str, answer: Mapping[str, Array], *, is_lazy: bool) -> None:
        self.launch_ns, self.work_ns = (1000 * int(number) for number in plan.split("/"))
        self.answer = answer
        self.is_lazy = is_lazy
        self.free_ns = 0
        self.clock = _plan_clock()

    def __call__(self) -> Mapping[str, Array]:
        answer = self.launch()
        self.wait()
        return answer

    def launch(self) -> Mapping[str, Array]:
        self.clock.now_ns += self.launch_ns
        self._queue(self.work_ns)
        return self.answer

    def wait(self) -> None:
        if not self.is_lazy:
            self.clock.now_ns = max(self.clock.now_ns, self.free_ns)

    def time_on_device(self) -> int | None:
        self.launch()
        self.wait()
        return max(self.launch_ns, self.work_ns)

    def host_copies(self) -> HostCopies:
        def roundtrip() -> None:
            self._queue(100_000)
            self.launch()
            self._queue(300_000)

        return HostCopies(lambda: self._queue(100_000), lambda: self._queue(300_000), roundtrip, 1_000_000, 3_000_000)

    def reset_memory_peak(self) -> None:
        return None

    def device_memory(self) -> DeviceMemory | None:
        return DeviceMemory(weights=2**20, allocated_peak=3 * 2**20, reserved_peak=4 * 2**20)

    def _queue(self, work_ns: int) -> None:
        self.free_ns = max(self.free_ns, self.clock.now_ns) + work_ns


class FaultySession:
    def __init__(self, plan: Mapping[str, str]) -> None:
        self.plan = plan
        self.calls = 0

    def signature(self) -> list[TensorSpec]:
        self.act("prepare")
        return [TensorSpec("x", "float32", ("batch", 4))]

    def effect(self) -> Effect:
        outputs_at = "device" if "device" in self.plan else None
        return Effect(device="cpu", precision="fp32", threads=1, outputs_at=outputs_at)

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:
        if "device" in self.plan:
            return PlannedDevice(self.plan["device"], {"y": np.ones(4)}, is_lazy=self.plan.get("wait") == "never")

        def call() -> Any:
            self.calls += 1
            self.act("each")
            if self.calls == 1:
                self.act("first")
            if self.calls == 50:
                self.act("measure")
            return {"y": np.full(4, np.nan if self.plan.get("check") == "nan" else 1.0)}

        return call

    def outputs(self, raw: Any) -> dict[str, Array]:
        return dict(raw)

    def act(self, phase: str) -> None:
        ACTIONS[self.plan.get(phase, "nothing")]()


class Faulty:
    name: ClassVar[str] = "faulty"
    formats: ClassVar[tuple[str, ...]] = (".faulty",)
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = "faulty"
    plan: Mapping[str, str] = {}

    def unsupported_reason(self) -> str | None:
        return os.environ.get("FAULTY_UNSUPPORTED")

    def preload(self) -> str:
        ACTIONS[os.environ.get("FAULTY_IMPORT", "nothing")]()
        return _version()

    def probe(self) -> EngineInfo:
        ACTIONS[os.environ.get("FAULTY_PROBE", "nothing")]()
        return EngineInfo(_version(), [Unit("cpu", "the CPU", ("fp32",))])

    def load(self, path: str, options: LoadOptions) -> Session:
        plan = dict(line.split(":") for line in Path(path).read_text().split())
        self.plan = plan
        session = FaultySession(plan)
        session.act("load")
        return session

    def time_canary(self, unit: str) -> dict[str, list[int]]:
        """Return the microseconds of each kernel that the plan names, as in `canary:100/100/900`."""
        spans = [1000 * int(one) for one in self.plan.get("canary", "").split("/") if one]
        return {"compute": spans, "memory": [2 * one for one in spans]} if spans else {}
