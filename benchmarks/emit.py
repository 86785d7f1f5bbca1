"""What one call of `prony.emit` costs a script, by what is told, beside printing a line and one bare write.

Bound: the median call under 20 microseconds, for ten numbers and their dictionary too.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

from benchmarks.bench import describe, scratch
from prony.emit import FILE, emit

CALLS = 20_000
BOUND_US = 20.0


def main() -> int:
    describe(__doc__).parse_args()
    with scratch() as folder:
        emitted, printed = folder / "emitted", folder / "printed"
        emitted.touch()
        os.environ[FILE] = str(emitted)
        with printed.open("w") as out, printed.open("ab", buffering=0) as raw:
            line = json.dumps({"loss": 0.123456}).encode() + b"\n"
            taken = {
                "one number": _taken(lambda n: emit({"loss": n * 0.5})),
                "two numbers, step": _taken(lambda n: emit({"loss": 0.123456, "accuracy": n * 0.5}, step=n)),
                "the same, unit, labels": _taken(
                    lambda n: emit({"loss": 0.5, "accuracy": 0.25}, step=n, unit="1", labels={"split": "test"})
                ),
                "ten numbers": _taken(lambda n: emit({f"m{place}": n * 0.5 for place in range(10)})),
                "ten of many digits": _taken(lambda n: emit({f"m{place}": n / 7 for place in range(10)})),
                "NaN, refused": _taken(lambda _: emit({"loss": float("nan")})),
                "(print JSON, flushed)": _taken(lambda n: print(json.dumps({"loss": n * 0.5}), file=out, flush=True)),
                "(one bare write)": _taken(lambda _: raw.write(line)),
            }
    print(f"{CALLS} calls each; microseconds\n")
    print(f"{'':24}{'median':>8}{'p99':>8}   (bound of the median: under {BOUND_US:g})")
    for name, (middle, tail) in taken.items():
        print(f"{name:24}{middle:8.1f}{tail:8.1f}")
    return int(any(middle >= BOUND_US for name, (middle, _) in taken.items() if not name.startswith("(")))


def _taken(call: Callable[[int], object]) -> tuple[float, float]:
    """Return median and 99th percentile of a call in microseconds."""
    durations = []
    for number in range(CALLS):
        begin_ns = time.perf_counter_ns()
        call(number)
        durations.append(time.perf_counter_ns() - begin_ns)
    durations.sort()
    return durations[CALLS // 2] / 1e3, durations[CALLS * 99 // 100] / 1e3


if __name__ == "__main__":
    raise SystemExit(main())
