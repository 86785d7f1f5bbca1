"""Rules on whether the warm state that is reported was ever reached."""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.evidence import Evidence, note, suspect
from prony.model.estimate import Reason
from prony.stats.steady import FEWEST


def no_steady_state(evidence: Evidence) -> Iterator[Reason]:
    """The durations never settle on a level."""
    restless = sum(run.steady_from is None for run in evidence.runs)
    if restless:
        yield suspect(
            "no_steady_state",
            f"No steady state in {restless} of {len(evidence.runs)} runs: the level still changes near the end, "
            "so all measured samples of these runs were used.",
        )


def steadiness_unjudged(evidence: Evidence) -> Iterator[Reason]:
    """Too few samples to look for a steady state."""
    short = sum(not run.is_judged for run in evidence.runs)
    if short:
        yield note(
            "steady_unjudged",
            f"{short} of {len(evidence.runs)} runs have fewer than {FEWEST} samples: "
            "too few to see whether they are steady.",
        )


def never_warm(evidence: Evidence) -> Iterator[Reason]:
    """The warm-up ran into its cap."""
    cold = sum(repetition.warm is False for repetition in evidence.selection.used)
    if cold:
        yield suspect("warmup_unstable", f"The warm-up of {cold} of {len(evidence.runs)} runs never became stable.")


def stopped_by_time(evidence: Evidence) -> Iterator[Reason]:
    """The cap on time ended the measured phase before the samples asked for were taken."""
    capped = sum(repetition.stopped_by == "time" for repetition in evidence.selection.used)
    if capped:
        asked = evidence.job.measure.runs
        fewest = min(run.taken for run in evidence.runs)
        yield note(
            "stopped_by_time",
            f"{capped} of {len(evidence.runs)} runs met the time cap: {fewest} samples in the shortest, "
            f"{asked} were asked for.",
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
