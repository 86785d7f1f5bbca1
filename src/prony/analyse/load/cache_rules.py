"""Rules on the server's cache: did an LLM's server answer from what earlier runs had left there?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.load.latency import token_latencies
from prony.analyse.load.rates import cached_share
from prony.analyse.verdict import note, percent, runs_text, suspect
from prony.model.clients import CacheFacts
from prony.model.estimate import Reason

# What a chat template puts before every prompt is cached too, and of a short prompt that is up to a quarter.
_WARM, _WARMER = 0.25, 0.10
_TTFT_FALLS, _OTHERS_FALL = 0.80, 0.90


def cache_warm(evidence: LoadEvidence) -> Iterator[Reason]:
    """A prompt that the server has in its cache is not computed: its first token says nothing of a new one."""
    if evidence.load.cache == "warm" or not evidence.used:
        return
    shares = [share for run in evidence.used if (share := _share(evidence, run.repetition)) is not None]
    if len(shares) < len(evidence.used):
        yield from _falling_ttft(evidence)
        return
    least, most = min(shares), max(shares)
    is_asked = any(facts.shares_prefix for facts in _facts(evidence))
    if most - least > _WARMER:
        text = f"{percent(least)} of the prompts' tokens came from the server's cache in one run and {percent(most)} in"
        yield suspect("cache_warm", f"{text} another: the runs did not measure the same. {_remedy(evidence)}")
    elif most > _WARM and not is_asked:
        yield suspect(
            "cache_warm",
            f"{percent(most)} of the prompts' tokens came from the server's cache: times to first token are for "
            f"prompts that it had seen before. {_remedy(evidence)}",
        )


def cache_as_asked(evidence: LoadEvidence) -> Iterator[Reason]:
    """Say what became of `load.cache`."""
    facts = _facts(evidence)
    failures = [one.reset_failure for one in facts if one.reset_failure]
    if failures:
        text = f"The server's cache was not emptied before {len(failures)} of {runs_text(len(facts))}: {failures[0]}."
        if evidence.load.same_text:
            yield suspect("cache_not_reset", f"{text} Remove load.same_text, so that no run sends another's text.")
        else:
            yield note("cache_not_reset", f"{text} But prompts were new in every run.")
    elif resets := [one.reset_by for one in facts if one.reset_by]:
        yield note("cache_reset", f"The server's cache was emptied before every run ({resets[0]}).")
    if evidence.load.cache == "warm" and evidence.used:
        shares = [share for run in evidence.used if (share := _share(evidence, run.repetition)) is not None]
        told = f"{percent(min(shares))} or more" if shares else "an unknown share"
        yield note(
            "cache_filled", f"Measured with a warm cache, as requested: {told} of the prompts' tokens came from it."
        )


def _falling_ttft(evidence: LoadEvidence) -> Iterator[Reason]:
    """Where the server does not tell: only the computing of prompts became faster after the first run."""
    sampled = [token_latencies(run) for run in evidence.used]
    if len(sampled) < 2 or not all("ttft_ms" in one and one["itl_ms"].count for one in sampled):
        return
    firsts, gaps = ([float(np.median(one[name].numbers)) for one in sampled] for name in ("ttft_ms", "itl_ms"))
    falls = max(firsts[1:]) < _TTFT_FALLS * firsts[0]
    if falls and min(gaps[1:]) >= _OTHERS_FALL * gaps[0]:
        yield suspect(
            "cache_warm",
            f"The median time to the first token fell from {firsts[0]:.3g} ms in the first run to at most "
            f"{max(firsts[1:]):.3g} ms in the others, and the gaps between tokens did not: the server may have "
            "had the prompts in "
            f"its cache. It does not report this. {_remedy(evidence)}",
        )


def _share(evidence: LoadEvidence, repetition: int) -> float | None:
    """Return which share of a run's prompts came from the cache: by the replies, else by the server's counters."""
    run = next(one for one in evidence.used if one.repetition == repetition)
    told = cached_share(run)
    if told is not None:
        return told
    facts = next((one.cache for one in evidence.result.repetitions if one.index == repetition), None)
    return None if facts is None else facts.hit_share


def _facts(evidence: LoadEvidence) -> list[CacheFacts]:
    return [one.cache for one in evidence.selection.used if one.cache is not None]


def _remedy(evidence: LoadEvidence) -> str:
    if evidence.load.same_text:
        return "Remove load.same_text, or set load.cache: cold or warm."
    return "Set load.cache: cold to empty the cache before each run, or warm to measure it filled."
