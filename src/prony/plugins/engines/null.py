"""An engine that does nothing, or one fixed piece of arithmetic: the instrument measured by itself.

Its "model" is a name: `noop` returns at once, so that whatever is timed is Prony's own; `kernel` sorts and sums a fixed
array on one thread, so that whatever varies is the machine's own; `spin-500us` returns when so much time has passed, so
that what should be reported is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from prony import __version__
from prony.errors import CapacityError, InputError
from prony.ports.engine import Array, Effect, EngineInfo, LoadOptions, Session, TensorSpec, Unit

_KERNEL_SIZE = 200_000
_SPIN = "spin-"


class NullSession:
    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def signature(self) -> list[TensorSpec]:
        return []

    def effect(self) -> Effect:
        return Effect(device="cpu", precision="none", threads=1)

    def bind(self, inputs: Mapping[str, Array]) -> Callable[[], Any]:  # noqa: ARG002 - it has none
        return self._call

    def outputs(self, raw: Any) -> dict[str, Array]:
        return {} if raw is None else {"sum": np.asarray(raw)}


class Null:
    name: ClassVar[str] = "null"
    formats: ClassVar[tuple[str, ...]] = (".null",)
    reference_formats: ClassVar[tuple[str, ...]] = ()
    requirements: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""

    def unsupported(self) -> str | None:
        return None

    def preload(self) -> str:
        return __version__

    def probe(self) -> EngineInfo:
        return EngineInfo(__version__, [Unit("cpu", "nothing, or a fixed kernel, on one thread", ("none",))])

    def load(self, path: str, options: LoadOptions) -> Session:
        if options.unit != "cpu":
            hint = "the null engine has only cpu"
            raise CapacityError(f"no unit {options.unit}", hint=hint, code="unit_unavailable")
        calls: dict[str, Callable[[], Any]] = {"noop": _nothing, "kernel": _kernel()}
        name = Path(path).stem
        if name.startswith(_SPIN):
            return NullSession(_spin(name))
        if name not in calls:
            raise InputError(f"the null engine has no model {name!r}", hint="noop, kernel or spin-500us")
        return NullSession(calls[name])


def _nothing() -> None:
    return None


def _spin(name: str) -> Callable[[], Any]:
    digits = name.removeprefix(_SPIN).removesuffix("us")
    if not digits.isdecimal():
        raise InputError(f"the null engine has no model {name!r}", hint="a time in microseconds, as in spin-500us")
    lasting_ns = 1000 * int(digits)

    def call() -> None:
        end_ns = time.perf_counter_ns() + lasting_ns
        while time.perf_counter_ns() < end_ns:
            pass

    return call


def _kernel() -> Callable[[], Any]:
    numbers = np.random.Generator(np.random.PCG64(7)).standard_normal(_KERNEL_SIZE)

    def call() -> Any:
        return np.sort(numbers).cumsum()[-1]

    return call
