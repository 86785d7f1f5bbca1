"""Call the axpy of the BLAS that numpy has loaded: the one loop over two arrays in it that is compiled as one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_MAPS = Path("/proc/self/maps")
# Names of axpy and of what sets the threads, as builds of OpenBLAS have them, and the type of their whole numbers.
_NAMES = (
    ("scipy_cblas_daxpy64_", "scipy_openblas_set_num_threads64_", ctypes.c_int64),
    ("cblas_daxpy64_", "openblas_set_num_threads64_", ctypes.c_int64),
    ("cblas_daxpy", "openblas_set_num_threads", ctypes.c_int32),
)

Array = np.ndarray[Any, np.dtype[np.float64]]
Axpy = Callable[[float, Array, Array], None]


def find_axpy() -> Axpy | None:
    """Return what adds a multiple of its first array to the second on one thread; None where no OpenBLAS is found."""
    library = _loaded_library()
    for axpy, set_threads, whole in _NAMES if library is not None else ():
        if hasattr(library, axpy) and hasattr(library, set_threads):
            getattr(library, set_threads)(1)
            call = getattr(library, axpy)
            call.argtypes = [whole, ctypes.c_double, ctypes.c_void_p, whole, ctypes.c_void_p, whole]
            call.restype = None

            def run(scale: float, x: Array, y: Array, call: Any = call) -> None:
                call(x.size, scale, x.ctypes.data, 1, y.ctypes.data, 1)

            return run
    return None


def _loaded_library() -> ctypes.CDLL | None:
    """Return the OpenBLAS that this process has mapped."""
    lines = _MAPS.read_text().splitlines() if _MAPS.exists() else []
    paths = [line.split(maxsplit=5)[5] for line in lines if "openblas" in line.lower()]
    return ctypes.CDLL(paths[0]) if paths else None
