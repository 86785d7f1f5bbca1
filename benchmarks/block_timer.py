"""What `with prony.timer(...)` costs a program, and how much of that is in the time that it tells.

Bound: the median block under 5 microseconds.
"""

from __future__ import annotations

import time
from statistics import median

from benchmarks.bench import describe
from prony.api.block_timer import Timers

BLOCKS, ROUNDS = 20_000, 15
BOUND_US = 5.0


def main() -> int:
    describe(__doc__).parse_args()
    timer = Timers()
    costs = [_cost_us(timer) for _ in range(ROUNDS)]
    told_us = timer.summary()[0].p50_ms * 1e3
    print(f"one block           {median(costs):5.2f} µs  ({min(costs):.2f} to {max(costs):.2f}, {ROUNDS} x {BLOCKS})")
    print(f"told of an empty one {told_us:4.2f} µs")
    return 0 if median(costs) < BOUND_US else 1


def _cost_us(timer: Timers) -> float:
    """Return what a block costs beyond an empty turn of the same loop."""
    clock = time.perf_counter_ns
    begin_ns = clock()
    for _ in range(BLOCKS):
        with timer("block"):
            pass
    middle_ns = clock()
    for _ in range(BLOCKS):
        pass
    return (2 * middle_ns - begin_ns - clock()) / BLOCKS / 1e3


if __name__ == "__main__":
    raise SystemExit(main())
