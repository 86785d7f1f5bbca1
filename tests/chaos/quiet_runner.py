"""Prony on a machine whose counters and canary say that nothing else runs; called like `prony`.

For tests of what is made of results: what else this machine does makes none of them void.
"""

from __future__ import annotations

import sys
from typing import Any

from prony.instruments import canary
from prony.instruments.noise import HostCounters
from prony.model.result import Noise
from prony.runner import observer, watch_machine


def quiet_between(before: HostCounters, after: HostCounters, *_: Any, **__: Any) -> Noise:
    return Noise(foreign_cpu=0.0, window_s=(after.at_ns - before.at_ns) / 1e9, cpu_resolution=0.0)


if __name__ == "__main__":
    for module in (observer, watch_machine):
        setattr(module, "noise_between", quiet_between)  # noqa: B010 - what is replaced is an import of theirs
    setattr(canary, "_fastest_ms", lambda _: 1.0)  # noqa: B010
    from prony.cli.main import main

    sys.exit(main())
