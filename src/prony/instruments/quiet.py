"""Say whether other programs use this machine, and wait until they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prony.instruments.noise import contamination

if TYPE_CHECKING:
    from prony.model.result import Noise

# So many looks in a row must find the machine quiet: programs pause for a moment too.
_QUIET_LOOKS = 3


def describe_others(noise: Noise) -> str:
    """Return what would disturb a measurement, with the programs that use most of the CPU; empty where nothing does."""
    reasons = dict(reason.split(": ", 1) for reason in contamination(noise))
    if "foreign_cpu" not in reasons:
        return "; ".join(reasons.values())
    named = ", ".join(f"{name} {share:.0%}" for name, share in noise.busiest.items())
    return f"other programs use {noise.foreign_cpu or 0.0:.0%} of the CPU" + (f" ({named})" if named else "")


def wait_until_quiet(
    limit_s: float, *, look: Callable[[], Noise], now_s: Callable[[], float], say: Callable[[str, float], None]
) -> bool:
    """Look at the machine until nothing disturbs it several times in a row; return whether that was within the limit.

    `look` takes as long as it looks; `say` is told what disturbs, and how many seconds are left.
    """
    end_s, quiet = now_s() + limit_s, 0
    while quiet < _QUIET_LOOKS:
        if now_s() >= end_s:
            return False
        others = describe_others(look())
        quiet = 0 if others else quiet + 1
        if others:
            say(others, max(0.0, end_s - now_s()))
    return True
