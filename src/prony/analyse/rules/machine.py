"""Rules on what else the machine did meanwhile, and on what its clock can tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prony.analyse.evidence import Evidence, note, percent, suspect, void
from prony.model.estimate import Reason
from prony.model.result import Repetition

_FOREIGN_CPU_VOIDS = 0.20
_BLIND_ABOVE = 0.25
_THROTTLED_SHARE = 0.01
_NS_PER_MS = 1e6


def check_contamination(evidence: Evidence) -> Iterator[Reason]:
    """Too few clean runs were left, so disturbed ones had to count."""
    dirty = evidence.selection.contaminated
    if not dirty:
        return
    foreign = max((repetition.noise.foreign_cpu or 0.0 for repetition in dirty), default=0.0)
    text = f"{len(dirty)} of {len(evidence.runs)} runs were disturbed and count all the same, for want of clean ones"
    if foreign > _FOREIGN_CPU_VOIDS:
        yield void("contaminated", f"{text}: other programs took up to {percent(foreign)} of the CPU.")
    else:
        yield suspect("contaminated", f"{text}: {'; '.join(_causes(dirty))}.")


def _causes(dirty: Iterable[Repetition]) -> list[str]:
    """Return one sentence for each kind of disturbance; a cause is written `code: sentence`."""
    first: dict[str, str] = {}
    for repetition in dirty:
        for cause in repetition.contamination:
            code, _, sentence = cause.partition(": ")
            first.setdefault(code, sentence or code)
    return [first[code] for code in sorted(first)]


def check_counters(evidence: Evidence) -> Iterator[Reason]:
    """The counters are too coarse for so short a window: nobody knows whether somebody else was running."""
    unseen = max((repetition.noise.cpu_resolution or 0.0 for repetition in evidence.selection.used), default=0.0)
    if unseen > _BLIND_ABOVE:
        yield suspect(
            "unwatched",
            f"The runs were too short to watch: others may have used {percent(unseen)} of the CPU unnoticed. "
            "Use more measure.runs, or measure.warmup: auto.",
        )


def check_throttling(evidence: Evidence) -> Iterator[Reason]:
    """Heat, a quota or swapping slowed the runs that count."""
    used = evidence.selection.used
    hot = sum(repetition.noise.thermal_events or 0 for repetition in used)
    if hot:
        yield suspect("thermal", f"The processor throttled for heat {hot} times while measuring.")
    pages = sum(repetition.noise.swapped_pages or 0 for repetition in used)
    if pages:
        yield suspect("swap", f"The machine swapped {pages} pages while measuring.")
    held_ms = [repetition.noise.quota_throttled_ms or 0.0 for repetition in used]
    windows_ms = [run.window_ns / _NS_PER_MS for run in evidence.runs]
    worst = max((held / window for held, window in zip(held_ms, windows_ms, strict=True) if window > 0), default=0.0)
    if worst > _THROTTLED_SHARE:
        yield suspect("quota", f"A CPU quota held the process back for up to {percent(worst)} of the measured time.")


def too_short_for_the_clock(evidence: Evidence) -> Iterator[Reason]:
    """A duration near the cost of reading the clock measures the clock."""
    clock = evidence.environment.clock if evidence.environment else {}
    known = {name: clock.get(name) for name in ("read_ns", "step_ns")}
    cost_ns = max((float(value) for value in known.values() if isinstance(value, int | float)), default=0.0)
    if evidence.headline is None or cost_ns <= 0:
        return
    times = evidence.headline.value * _NS_PER_MS / cost_ns
    text = f"One inference is only {times:.3g} times what the clock takes or resolves ({cost_ns:.3g} ns)"
    if times < 10:
        yield suspect("short", f"{text}: the harness is a large part of it.")
    elif times < 100:
        yield note("short", f"{text}: the harness is a part of it (see prony calibrate).")
