"""Measure the bandwidth of the host's memory: processes pinned to CPUs pass over arrays of their own.

Processes and not threads, because Python's lock would be a part of what many threads take.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import CapacityError, SutError
from prony.kinds.hardware.child.blas import Array, find_axpy
from prony.runner.child.readings import SuiteTest, rate_of

_ITEM = 8
_SCALE = 3.0
_BLOCK = 2**17
_FREE_SHARE = 0.6
_TIMES_CACHE = 4
_UNKNOWN_CACHE = 64 * 2**20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
# Bytes that each item counts for, as STREAM counts them: what is read and what is written.
_BYTES = {"copy": 2 * _ITEM, "triad": 3 * _ITEM, "axpy": 3 * _ITEM}
_WORDS = {"copy": b"c", "triad": b"t", "axpy": b"x"}
_END = b"e"
Passes = dict[bytes, Callable[[], Any]]


class MemorySuite:
    """Copy, and triad or axpy, with all CPUs and then with fewer processes.

    Numpy has no loop that reads two arrays and writes a third one as fast as a compiled one does. PyTorch has: triad.
    By numpy it is axpy, which adds a multiple of one array to the other.
    """

    device_id = None
    settles = False

    def __init__(self, options: Mapping[str, Any], engine: object) -> None:
        del engine
        if not hasattr(os, "fork"):
            raise CapacityError(
                "the memory test needs an operating system with fork",
                code="unit_unavailable",
                hint="run it on Linux or macOS",
            )
        self._cpus = usable_cpus()
        most = int(options.get("threads") or len(self._cpus))
        self._counts = [count for count in _doubling(len(self._cpus)) if count <= most] or [1]
        self._bytes = int(options.get("size") or _array_bytes())
        self._seed = int(options.get("seed", 0))
        self._team: _Team | None = None
        self._uses_torch = options.get("library") == "torch"
        self._names = ["copy", "triad"] if self._uses_torch else ["copy", "axpy"]
        if not self._uses_torch and find_axpy() is None:
            self._names = ["copy"]

    def tests(self) -> Iterator[SuiteTest]:
        for count in reversed(self._counts):
            length = max(_BLOCK // _ITEM, self._bytes // _ITEM // count)
            self._team = _Team(self._cpus[:count], partial(_passes, length, uses_torch=self._uses_torch), self._seed)
            for name in self._names:
                operation = "" if count == self._counts[-1] else f"threads={count}"
                sample = partial(self._team.sample, name)
                yield SuiteTest(f"{name}_gb_s", operation, sample, rate_of(_BYTES[name] * length * count))
            self.close()

    def facts(self) -> Mapping[str, str]:
        array = f"{self._bytes / 1e6:.0f} MB"
        if self._bytes < _TIMES_CACHE * _cache_bytes():
            array += f", with a last-level cache of {_cache_bytes() / 1e6:.0f} MB: too small, the cache helps"
        left_out = {} if len(self._names) > 1 else {"axpy left out": "needs a numpy with OpenBLAS"}
        return left_out | {
            "device": "host memory", "threads": str(self._counts[-1]), "version": np.__version__,
            "array": array, "data": f"seeded normal, seed {self._seed}",
            "counting": "copy 16 bytes per item, triad and axpy 24; reads that a store causes are not counted",
            "processes": "pinned, one per CPU, each with its own arrays",
        }  # fmt: skip

    def close(self) -> None:
        if self._team is not None:
            self._team.close()
            self._team = None


def usable_cpus() -> list[int]:
    """Return the CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _doubling(most: int) -> list[int]:
    counts = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*counts, most]


def _array_bytes() -> int:
    """Return four times the last cache, and no more than three arrays have room for in the free memory."""
    return min(_TIMES_CACHE * (_cache_bytes() or _UNKNOWN_CACHE), int(_FREE_SHARE * free_bytes() / 3))


def _cache_bytes() -> int:
    """Return the size of the last cache; 0 where the system does not tell."""
    return max((read_size(path.read_text()) for path in _CACHES.glob("index*/size")), default=0)


def read_size(text: str) -> int:
    """Return the bytes of a size as the kernel writes it: `33792K`."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(text.strip().rstrip("KMG")) * units.get(text.strip()[-1:], 1)


def free_bytes() -> int:
    """Return the memory that programs may have now."""
    for line in _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else ():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 8 * _UNKNOWN_CACHE


_MEMINFO = Path("/proc/meminfo")


class _Team:
    """Processes that wait for a word, pass over their arrays and note when they began and ended."""

    def __init__(self, cpus: Sequence[int], make: Callable[[int], Passes], seed: int) -> None:
        self._stamps = mmap.mmap(-1, 2 * _ITEM * len(cpus))
        self._told = np.frombuffer(self._stamps, np.int64)
        self._answers, answer = os.pipe()
        self._words: list[int] = []
        self._pids: list[int] = []
        for place, cpu in enumerate(cpus):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                for other in self._words:
                    os.close(other)
                os.close(write)
                _work(cpu, partial(make, seed + place), self._told[2 * place : 2 * place + 2], read, answer)
            os.close(read)
            self._words.append(write)
            self._pids.append(pid)
        os.close(answer)
        self._wait()

    def sample(self, name: str, count: int) -> list[int]:
        taken = []
        for _ in range(count):
            for word in self._words:
                os.write(word, _WORDS[name])
            self._wait()
            taken.append(int(self._told[1::2].max() - self._told[::2].min()))
        return taken

    def _wait(self) -> None:
        """Wait until every process has answered."""
        missing = len(self._words)
        while missing:
            told = os.read(self._answers, missing)
            if not told:
                raise SutError(
                    "a process of the memory test ended unexpectedly",
                    hint="check that enough memory is free",
                    code="hardware_test_failed",
                )
            missing -= len(told)

    def close(self) -> None:
        for word in self._words:
            os.close(word)
        for pid in self._pids:
            os.waitpid(pid, 0)
        os.close(self._answers)
        self._words, self._pids = [], []


def _work(cpu: int, made: Callable[[], Passes], told: Any, words: int, answer: int) -> None:
    """Be one process of a team, until its words end."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {cpu})
        passes = made()  # here, so that the arrays lie in the memory nearest to this CPU
        os.write(answer, _END)
        while word := os.read(words, 1):
            run = passes[word]
            begin_ns = time.perf_counter_ns()
            run()
            told[:] = begin_ns, time.perf_counter_ns()
            os.write(answer, word)
        status = 0
    finally:
        os._exit(status)


def _passes(length: int, seed: int, *, uses_torch: bool) -> Passes:
    block = np.random.default_rng(seed).standard_normal(_BLOCK)
    a, b, c = np.zeros(length), np.resize(block, length), np.resize(block[::-1], length)
    return {_WORDS["copy"]: partial(np.copyto, a, b)} | (_triad(a, b, c) if uses_torch else _axpy(a, c))


def _axpy(a: Array, c: Array) -> Passes:
    # By numbers around one, a thousand passes stay far from the largest float.
    axpy = find_axpy()
    return {} if axpy is None else {_WORDS["axpy"]: partial(axpy, _SCALE, c, a)}


def _triad(a: Array, b: Array, c: Array) -> Passes:
    import torch

    torch.set_num_threads(1)
    target, other, source = (torch.from_numpy(one) for one in (a, b, c))
    return {_WORDS["triad"]: lambda: torch.add(other, source, alpha=_SCALE, out=target)}
