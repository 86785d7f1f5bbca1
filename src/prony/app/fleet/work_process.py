"""Run the orders of a server in a process of its own, one at a time.

It ends when its input does, which also happens when the server is killed.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from prony.errors import PronyError

LENGTH = struct.Struct(">Q")
NO_MEMORY = 70  # the exit code of a process that needed more memory than it may have


@dataclass(frozen=True)
class WorkLimits:
    """What one order may take: seconds of CPU, seconds by the clock, and memory beyond what the process starts with."""

    cpu_s: float
    wall_s: float
    memory_bytes: int


def encode_message(thing: object) -> bytes:
    """Return what goes through the pipe: the two ends are one program, so it is pickled."""
    body = pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


def answer_order(
    orders: BinaryIO, answers: BinaryIO, carry_out: Callable[[Any], object], limits: WorkLimits | None = None
) -> None:
    """Carry out what is ordered, one after the other, until no more orders can come."""
    while len(head := orders.read(LENGTH.size)) == LENGTH.size:
        order = pickle.loads(orders.read(*LENGTH.unpack(head)))
        _limit_cpu(limits.cpu_s if limits is not None else 0.0)
        try:
            done = carry_out(order)
        except PronyError as exc:
            done = exc
        answers.write(encode_message(done))
        answers.flush()
        _limit_cpu(0.0)


def work(carry_out: Callable[[Any], object], limits: WorkLimits | None = None) -> None:
    """Be such a process, on its standard input and output."""
    for number in (signal.SIGINT, signal.SIGTERM):  # meant for the server, which ends us when it has no more orders
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # what was imported stays, and need not be looked through again and again
    if limits is not None:
        _limit_memory(limits.memory_bytes)
    try:
        answer_order(sys.stdin.buffer, sys.stdout.buffer, carry_out, limits)
    except MemoryError:
        os._exit(NO_MEMORY)


def _limit_cpu(seconds: float) -> None:
    """End this process by SIGPROF after so many seconds of CPU; 0 is never. A busy machine makes nothing late."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory(more_bytes: int) -> None:
    """Let this process have so much more address space than it has now; only Linux tells how much that is."""
    if sys.platform != "linux":
        return
    import resource

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = size + more_bytes
    if hard in (resource.RLIM_INFINITY, -1) or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
