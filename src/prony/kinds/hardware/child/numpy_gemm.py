"""Measure matrix products on the CPU by numpy and the BLAS that it brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from prony.kinds.hardware.child.memory import usable_cpus
from prony.kinds.hardware.child.shapes import count_operations, shape_text, shapes_of
from prony.runner.child.readings import SuiteTest, rate_of, time_by_wall

_DTYPES = {"fp32": np.float32, "fp64": np.float64}


class NumpyGemmSuite:
    """Products in float32 and float64: what a BLAS computes."""

    device_id = None
    settles = False

    def __init__(self, options: Mapping[str, Any], engine: object) -> None:
        del engine
        self._options = options
        self._wanted: list[str] = list(options.get("precisions") or _DTYPES)

    def tests(self) -> Iterator[SuiteTest]:
        random = np.random.default_rng(int(self._options.get("seed", 0)))
        for precision in self._wanted:
            if precision not in _DTYPES:
                continue
            for m, n, k in shapes_of(self._options, "cpu"):
                a = random.standard_normal((m, k)).astype(_DTYPES[precision])
                b = random.standard_normal((k, n)).astype(_DTYPES[precision])
                out, operations = np.empty((m, n), _DTYPES[precision]), count_operations((m, n, k))

                def multiply(a: Any = a, b: Any = b, out: Any = out) -> None:
                    np.matmul(a, b, out=out)

                rate = rate_of(operations / 1e3)
                yield SuiteTest(f"gemm_{precision}_tflops", shape_text((m, n, k)), time_by_wall(multiply), rate)

    def facts(self) -> Mapping[str, str]:
        skipped = {f"{one} left out": "is not a format of numpy's BLAS" for one in self._wanted if one not in _DTYPES}
        return {
            "device": "CPU", "version": np.__version__, "threads": str(len(usable_cpus())),
            "counting": "2 m n k operations",
            "data": f"seeded normal, seed {self._options.get('seed', 0)}",
        } | skipped  # fmt: skip

    def close(self) -> None:
        return None
