"""One run in time, as a picture of it is drawn: when, how long, what failed, and which part of it counts."""

from __future__ import annotations

from dataclasses import dataclass

from prony.model.estimate import Summary
from prony.model.metric import key_of
from prony.stats.quantiles import Array

# Those that have a number for each sample, request or gap.
_SAMPLED = (
    "inference_ms", "e2e_ms", "service_ms", "ttfb_ms", "ttft_ms", "ttft_content_ms", "itl_ms", "tpot_ms",
    "tokens_per_s_per_user", "sent_late_ms", "quality",
)  # fmt: skip


@dataclass(frozen=True)
class Track:
    """One run in time, in nanoseconds: successes and failures by when they ended, and the part that counts."""

    repetition: int
    ends_ns: Array
    values: Array
    failed_ns: Array
    window_ns: tuple[int, int]
    origin_ns: int


def sampled_metrics(summary: Summary, headline: str) -> tuple[str, ...]:
    """Return the metrics of the glossary that have a number for each sample, the headline's first."""
    known = {key_of(key).metric for key in summary.estimates}
    first = key_of(headline).metric
    return tuple(sorted((name for name in _SAMPLED if name in known), key=lambda name: name != first))
