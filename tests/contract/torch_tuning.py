"""Run by the interpreter that has PyTorch: try kernels that are stand-ins in its own processes, print what was seen."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch._inductor import autotune_process, config
from torch._inductor.autotune_process import _TestBenchmarkRequest, get_tuning_process_pool

from prony.errors import SutError
from prony.plugins.engines.torch_calls import PreparedRun, TorchWork

BROKEN = "CUDA error: an illegal memory access was encountered"


def run_tuned(tune: Callable[[], Any]) -> Any:
    """Compile a module for a card by max-autotune; `tune` is what PyTorch does meanwhile."""
    vendor = SimpleNamespace(compile=lambda *_, **__: tune, cuda=SimpleNamespace(synchronize=lambda: None))
    return PreparedRun(TorchWork(vendor, torch.nn.Identity(), (), {}, "max-autotune", "cuda:0"))()


def try_kernels(*kernels: Any) -> list[tuple[float, int]]:
    """Try each as PyTorch does; return its time, and which process tries the next one."""
    pool = get_tuning_process_pool()
    (process,) = pool.processes
    return [(pool.target(SimpleNamespace(bmreq=one)), process.process.pid) for one in kernels]


def main() -> None:
    warnings.simplefilter("ignore")
    seen: dict[str, Any] = {}
    os.environ["TORCHINDUCTOR_AUTOTUNE_IN_SUBPROC"] = "0"
    run_tuned(lambda: None)
    seen["apart where the environment says no"] = config.autotune_in_subproc
    del os.environ["TORCHINDUCTOR_AUTOTUNE_IN_SUBPROC"]

    kernels = [
        _TestBenchmarkRequest(1.5),
        _TestBenchmarkRequest(exc=ValueError("too large")),
        _TestBenchmarkRequest(exc=RuntimeError(BROKEN)),
        _TestBenchmarkRequest(2.5),
    ]
    kept: list[Any] = []

    def tune() -> list[tuple[float, int]]:
        kept.extend(get_tuning_process_pool().processes)
        return try_kernels(*kernels)

    run_tuned(lambda: None)  # a second time changes nothing
    seen["tried"] = run_tuned(tune)
    seen["apart"] = config.autotune_in_subproc
    seen["ended"] = [not one.alive() for one in kept]
    seen["pools"] = autotune_process.get_tuning_process_pool.cache_info().currsize

    def fail(error: Exception) -> Any:
        raise error

    try:
        run_tuned(lambda: fail(RuntimeError(BROKEN)))
    except SutError as exc:
        seen["broken"] = exc.to_dict()
    try:
        run_tuned(lambda: fail(RuntimeError("CUDA out of memory")))
    except RuntimeError as exc:
        seen["other"] = str(exc)
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
