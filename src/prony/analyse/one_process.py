"""Summarise the calls of one function that one process made: the median with its interval, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prony.analyse.estimates import across_runs
from prony.analyse.rules import WIDEST_INTERVAL
from prony.analyse.verdict import percent, suspect, verdict_of, void
from prony.instruments.noise import contamination
from prony.model.estimate import Estimate, Reason, Verdict
from prony.model.result import FOREIGN_CPU_VOIDS
from prony.stats.quantiles import Array
from prony.stats.steady import steady_from

if TYPE_CHECKING:
    from prony.model.result import Noise

# Calls that follow each other are alike, so the interval is that of the medians of so many stretches of time.
_STRETCHES = 20
ONE_PROCESS = (
    "One process only: the interval says where the median of this process lies. Another process of the same function "
    "may differ by more, because of memory layout, hash seed and machine "
    "state. The interval does not include that."
)


@dataclass(frozen=True)
class CallSummary:
    """`p50` is the median of a call; `used` are the durations in milliseconds that count, in the order of the calls."""

    p50: Estimate
    used: Array
    verdict: Verdict


def summarise_calls(durations_ms: Array, noise: Noise) -> CallSummary:
    """Return what one process shows of a function's duration; calls before the steady state do not count.

    Args:
        durations_ms: One duration a call, or a group of calls, in the order of time.
        noise: What else the machine did meanwhile.
    """
    begin = steady_from(durations_ms)
    used = durations_ms[begin or 0 :]
    count = min(_STRETCHES, used.size)
    medians = np.array([np.median(part) for part in np.array_split(used, count)], dtype=np.float64)
    p50 = across_runs(medians, "ms", "stretches of calls in one process")
    reasons = (*_describe_noise(noise), *_describe_samples(p50, is_steady=begin is not None))
    return CallSummary(p50, used, verdict_of((*reasons, suspect("one_run", ONE_PROCESS))))


def _describe_noise(noise: Noise) -> Iterator[Reason]:
    found = [cause.partition(": ")[2] or cause for cause in contamination(noise)]
    if found:
        rule = void if (noise.foreign_cpu or 0.0) > FOREIGN_CPU_VOIDS else suspect
        yield rule("contaminated", f"The machine was disturbed: {'; '.join(found)}. Measure again when it is quiet.")
    if noise.unwatched:
        yield suspect("unwatched", f"Other activity on this machine is unknown: {noise.unwatched}.")


def _describe_samples(p50: Estimate, *, is_steady: bool) -> Iterator[Reason]:
    if not is_steady:
        yield suspect(
            "no_steady_state", "There is no steady state: the level still changes near the end, so all calls count."
        )
    width = p50.relative_half_width
    if width is not None and width > WIDEST_INTERVAL:
        yield suspect(
            "wide_interval", f"The interval is ±{percent(width)} wide: measure longer, or on a quieter machine."
        )
