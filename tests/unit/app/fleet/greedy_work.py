"""What a process of a pool does in the tests: answer, or use up what it may have."""

from __future__ import annotations

import time
from dataclasses import dataclass

from prony.app.fleet.work_process import WorkLimits, work

LIMITS = WorkLimits(cpu_s=1.0, wall_s=20.0, memory_bytes=2**27)


@dataclass(frozen=True)
class Wish:
    what: str


def carry_out(wish: Wish) -> str:
    if wish.what == "cpu":
        while True:
            pass
    if wish.what == "memory":
        return "x" * 2**30
    if wish.what == "sleep":
        time.sleep(600)
    return wish.what


def main() -> None:
    work(carry_out, LIMITS)
