"""Say before a run that others use this machine, and wait for a quiet one where that is asked for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.model.result import Noise
    from prony.runner.watch_machine import MachineWatch

_SHORTEST_S = 0.3  # in less the kernel's counters see too little
_LOOK_S = 1.0
_SAY_EVERY_S = 10.0


def watch_others() -> MachineWatch:
    """Return a watch that has begun: it looks on while this command gets ready."""
    from prony.runner.watch_machine import MachineWatch

    watch = MachineWatch()
    watch.begin()
    return watch


def heed_others(watch: MachineWatch, waits_s: float) -> None:
    """Say who uses the machine, where somebody does; wait `waits_s` seconds at most until nobody does."""
    from prony.cli.output import print_note
    from prony.instruments.quiet import describe_others

    time.sleep(max(0.0, _SHORTEST_S - watch.elapsed_s))
    others = describe_others(watch.end())
    if others and waits_s:
        _wait(others, waits_s)
    elif others:
        print_note(f"the machine is busy: {others}; results may be void; --wait-quiet 5m waits until it is quiet")


def _wait(others: str, limit_s: float) -> None:
    from prony.cli.output import print_note
    from prony.instruments.quiet import wait_until_quiet

    print_note(f"the machine is busy: {others}; waiting up to {limit_s:.0f} s")
    said_s = time.monotonic()

    def say(disturbance: str, left_s: float) -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= _SAY_EVERY_S:
            said_s = time.monotonic()
            print_note(f"  still busy: {disturbance}; {left_s:.0f} s left")

    is_quiet = wait_until_quiet(limit_s, look=_look, now_s=time.monotonic, say=say)
    print_note("the machine is quiet now" if is_quiet else f"still busy after {limit_s:.0f} s: measuring anyway")


def _look() -> Noise:
    watch = watch_others()
    time.sleep(_LOOK_S)
    return watch.end()
