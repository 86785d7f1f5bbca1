"""Validity rules: what can be wrong with a measurement of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from prony.analyse.verdict import Evidence, note, percent, runs_text, suspect, void
from prony.error_codes import SEE_LOG
from prony.model.estimate import Reason
from prony.model.recipe import UNLIMITED_RUNS
from prony.model.result import FOREIGN_CPU_VOIDS, Repetition, ResultState
from prony.ports.metric_titles import metric_title
from prony.stats.intervals import rate_interval
from prony.stats.spread import FEWEST_RUNS, detectable_change, noise_of
from prony.stats.steady import FEWEST
from prony.stats.stopping import achieved_precision

_BLIND_ABOVE = 0.25
_THROTTLED_SHARE = 0.01
_NS_PER_MS = 1e6


def check_contamination(evidence: Evidence) -> Iterator[Reason]:
    """Too few clean runs were left, so disturbed ones had to count."""
    dirty = evidence.selection.contaminated
    if not dirty:
        return
    worst = max((repetition.noise for repetition in dirty), key=lambda noise: noise.foreign_cpu or 0.0)
    foreign = worst.foreign_cpu or 0.0
    # One count where all are: several jobs share this sentence, and "3 to 4 of 3 to 4" says nothing.
    whole = len(dirty) == len(evidence.runs) > 1
    which = f"All {len(dirty)} runs" if whole else f"{len(dirty)} of {runs_text(len(evidence.runs))}"
    text = f"{which} were disturbed but kept, because too few were undisturbed"
    if len(evidence.runs) == 1:
        text = "The only run was disturbed"
    # Where most runs are clean, the others move their median by little, and a comparison judges ranks.
    if foreign > FOREIGN_CPU_VOIDS and 2 * len(dirty) >= len(evidence.runs):
        named = ", ".join(f"{name} {percent(share)}" for name, share in worst.busiest.items())
        who = f" (the busiest: {named})" if named else ""
        yield void(
            "contaminated",
            f"{text}: other programs took up to {percent(foreign)} of the CPU{who}. Stop them, or measure later.",
        )
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


def check_watch(evidence: Evidence) -> Iterator[Reason]:
    """Nobody knows whether somebody else was running: on this machine, or on that of the service."""
    told = {one.noise.unwatched: one.noise.foreign_cpu is None for one in evidence.selection.used}
    for text, is_here in told.items():
        if text and is_here:
            yield suspect(
                "unwatched",
                f"Other activity on this machine is unknown: {text}. Let Prony start the measured program, run "
                "Prony as a user who "
                "can see its processes, or compare both sides with prony duet.",
            )
        elif text:
            yield note(
                "unwatched",
                f"{text[:1].upper()}{text[1:]}: other activity there is unknown. Compare both "
                "sides with prony duet, or run an agent there.",
            )


def check_counters(evidence: Evidence) -> Iterator[Reason]:
    """The counters are too coarse for so short a window: nobody knows whether somebody else was running."""
    unseen = max((repetition.noise.cpu_resolution or 0.0 for repetition in evidence.selection.used), default=0.0)
    if unseen > _BLIND_ABOVE:
        yield suspect(
            "unwatched",
            f"The runs were too short to monitor: other programs may have used {percent(unseen)} of the CPU unnoticed. "
            "Make runs longer: measure.runs or measure.warmup: auto of a model, load.duration of a load, more work in "
            "one execution of a script.",
        )


def check_throttling(evidence: Evidence) -> Iterator[Reason]:
    """Heat, a quota or swapping slowed the runs that count."""
    used = evidence.selection.used
    hot = sum(repetition.noise.thermal_events or 0 for repetition in used)
    if hot:
        text = f"The processor throttled for heat {hot} times while measuring. Cool it better, or let it rest before."
        yield suspect("thermal", text)
    pages = sum(repetition.noise.swapped_pages or 0 for repetition in used)
    if pages:
        yield suspect("swap", f"The machine swapped {pages} pages while measuring. Free some memory.")
    held_ms = [repetition.noise.quota_throttled_ms or 0.0 for repetition in used]
    windows_ms = [run.window_ns / _NS_PER_MS for run in evidence.runs]
    worst = max((held / window for held, window in zip(held_ms, windows_ms, strict=True) if window > 0), default=0.0)
    if worst > _THROTTLED_SHARE:
        text = f"A CPU quota throttled the process for up to {percent(worst)} of the measured time. Raise the quota."
        yield suspect("quota", text)


def too_short_for_the_clock(evidence: Evidence) -> Iterator[Reason]:
    """A duration near the cost of reading the clock measures the clock."""
    clock = evidence.environment.clock if evidence.environment else {}
    known = {name: clock.get(name) for name in ("read_ns", "step_ns")}
    cost_ns = max((float(value) for value in known.values() if isinstance(value, int | float)), default=0.0)
    if evidence.headline is None or cost_ns <= 0:
        return
    times = evidence.headline.value * _NS_PER_MS / cost_ns
    text = f"One inference is only {times:.3g} times the clock's cost or resolution ({cost_ns:.3g} ns)"
    if times < 10:
        yield suspect("short", f"{text}: a large part of it is measurement overhead.")
    elif times < 100:
        yield note("short", f"{text}: a part of it is measurement overhead (see prony calibrate).")


_FEWEST_CLEAN = 5
WIDEST_INTERVAL = 0.10
_BLIND_BELOW = 0.05


def nothing_measured(evidence: Evidence) -> Iterator[Reason]:
    """Nothing that succeeded: there is no number to quote."""
    if evidence.runs or evidence.headline is not None:
        return
    failure = evidence.result.failure
    failures = [repetition.failure for repetition in evidence.result.repetitions if repetition.failure is not None]
    first = failure or (failures[0] if failures else None)
    cause = f": {first.message}" if first else ""
    tried = len(evidence.result.repetitions)
    text = f"None of {tried} repetitions gave a measurement{cause}." if tried else f"Nothing ran{cause}."
    hint = first.hint if first else ""
    yield void("no_success", f"{text} Hint: {hint}." if hint else f"{text} {SEE_LOG}.")


def failed_repetitions(evidence: Evidence) -> Iterator[Reason]:
    """Some repetitions failed while others did not: the system under test is not reliable."""
    ended = [repetition for repetition in evidence.result.repetitions if repetition.state != "cancelled"]
    failed = [repetition for repetition in ended if repetition.state == "failed"]
    interval = rate_interval(len(failed), len(ended))
    if not evidence.runs or not failed or interval is None:
        return
    message = next(
        (repetition.failure.message for repetition in failed if repetition.failure is not None), "no reason given"
    )
    yield suspect(
        "failed_repetitions",
        f"{len(failed)} of {len(ended)} repetitions failed ({percent(interval[0])} to {percent(interval[1])} of them "
        f"with 95 % confidence), the first one with: {message}.",
    )


def partial_result(evidence: Evidence) -> Iterator[Reason]:
    """The job was stopped before its end."""
    if evidence.result.state == ResultState.PARTIAL:
        measure = evidence.job.measure
        planned = f"up to {measure.until.max_repeats}" if measure.until else str(measure.repeats)
        yield suspect("partial", f"The job was stopped early: {runs_text(len(evidence.runs))} of {planned} planned.")


def few_runs(evidence: Evidence) -> Iterator[Reason]:
    """An interval over runs needs runs."""
    clean = len(evidence.runs) - len(evidence.selection.contaminated)
    if len(evidence.runs) == 1:
        yield suspect("one_run", "One run cannot show run-to-run spread: the interval covers that one process only.")
    elif evidence.runs and clean < _FEWEST_CLEAN:
        there = f"Only {runs_text(clean, 'undisturbed')}" if clean else "No undisturbed run"
        text = f"{there} for this number, but it needs {_FEWEST_CLEAN}: make more runs, or use a quieter machine."
        yield suspect("few_runs", text)


def wide_interval(evidence: Evidence) -> Iterator[Reason]:
    """The runs disagree so much that the number says little."""
    width = evidence.headline.relative_half_width if evidence.headline else None
    if width is not None and width > WIDEST_INTERVAL:
        yield suspect(
            "wide_interval",
            f"The interval of the median is ±{percent(width)} wide, more than ±{percent(WIDEST_INTERVAL)}: "
            "make more runs, or use a quieter machine.",
        )


def missing_intervals(evidence: Evidence) -> Iterator[Reason]:
    """A percentile has no interval that can be vouched for: say why."""
    by_reason: dict[str, list[str]] = {}
    for key, why in evidence.refused.items():
        by_reason.setdefault(why, []).append(key)
    for why, keys in by_reason.items():
        yield note("no_interval", f"No interval for {', '.join(map(metric_title, keys))}: {why}.")


def until_reached(evidence: Evidence) -> Iterator[Reason]:
    """The recipe asked for a width: say what was reached."""
    until = evidence.job.measure.until
    if until is None or not evidence.runs:
        return
    width = achieved_precision(evidence.numbers)
    if width is None or width > until.ci:
        reached = "no 95 % interval yet" if width is None else f"±{percent(width)}"
        yield note(
            "ci_not_reached",
            f"The recipe asks for ±{percent(until.ci)}; {runs_text(len(evidence.runs))} reached {reached}.",
        )


def blind(evidence: Evidence) -> Iterator[Reason]:
    """What a comparison of so many runs does not see. Of fewer than it needs there is nothing to say."""
    if len(evidence.runs) < FEWEST_RUNS:
        return
    spread = noise_of(np.array(evidence.numbers))
    smallest = detectable_change(spread, len(evidence.runs)) if spread else 0.0
    if smallest > _BLIND_BELOW:
        yield note(
            "detectable_change",
            f"With {runs_text(len(evidence.runs))} that vary by {percent(spread or 0.0)}, changes smaller than "
            f"{percent(smallest)} are not "
            f"reliably detected here: more than one in five is missed.",
        )


def no_steady_state(evidence: Evidence) -> Iterator[Reason]:
    """The durations never settle on a level."""
    restless = sum(run.steady_from is None for run in evidence.runs)
    if restless:
        yield suspect(
            "no_steady_state",
            f"No steady state in {restless} of {len(evidence.runs)} runs: the level still changes near the end, "
            "so all measured samples of these runs were used. Raise measure.warmup or measure.runs.",
        )


def steadiness_unjudged(evidence: Evidence) -> Iterator[Reason]:
    """Too few samples to look for a steady state."""
    short = sum(not run.is_judged for run in evidence.runs)
    if short:
        yield note(
            "steady_unjudged",
            f"{short} of {len(evidence.runs)} runs have fewer than {FEWEST} samples: too few to check "
            "for a steady state.",
        )


def never_warm(evidence: Evidence) -> Iterator[Reason]:
    """The warm-up ran into its cap."""
    cold = sum(repetition.warm is False for repetition in evidence.selection.used)
    if cold:
        yield suspect(
            "warmup_unstable",
            f"The warm-up of {cold} of {len(evidence.runs)} runs never became stable: use a quieter machine.",
        )


def stopped_by_time(evidence: Evidence) -> Iterator[Reason]:
    """The cap on time ended the measured phase before the samples asked for were taken."""
    capped = sum(repetition.stopped_by == "time" for repetition in evidence.selection.used)
    asked = evidence.job.measure.least_runs
    if capped and asked < UNLIMITED_RUNS:
        fewest = min(run.taken for run in evidence.runs)
        yield note(
            "stopped_by_time",
            f"{capped} of {len(evidence.runs)} runs reached the time limit: {fewest} samples in the shortest, "
            f"{asked} were requested.",
        )


def page_cache_mixed(evidence: Evidence) -> Iterator[Reason]:
    """Cold starts that read the model from memory are not those that read it from disk."""
    shares = [repetition.page_cache for repetition in evidence.selection.cold if repetition.page_cache is not None]
    cached, uncached = sum(share >= 0.9 for share in shares), sum(share <= 0.5 for share in shares)
    if cached and uncached:
        yield note(
            "page_cache_mixed",
            f"Load times mix two states: {cached} cold starts found the model in the page cache, {uncached} did not.",
        )
