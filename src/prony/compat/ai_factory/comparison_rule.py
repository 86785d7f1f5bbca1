"""Apply AI Factory's fixed limits to two entries: one number against one, and no noise considered.

Mean, 95th and 99th percentile of the latency may rise by at most 10 %, throughput may fall by 10 % and the share of
successes by 1 %, each relative to the baseline.
"""

from __future__ import annotations

from prony.analyse.compare.pairwise import title_of, value_text
from prony.errors import InputError
from prony.model.comparison import Conclusion, Contrast, Effect, percent_text
from prony.model.estimate import Estimate
from prony.model.experiment_data import Entry
from prony.model.metric import key_of, metric_of

_METHOD = "one number against one; fixed limit"


class FixedLimits:
    """The rule of AI Factory."""

    about = "fixed limits"

    def __call__(self, baseline: Entry, candidate: Entry) -> tuple[Contrast, ...]:
        """Return a contrast for each limit; those that a side has no number for are insufficient."""
        return _contrasts(baseline, candidate)


fixed_limits = FixedLimits()


def _contrasts(baseline: Entry, candidate: Entry) -> tuple[Contrast, ...]:
    workload = baseline.job.workload
    if workload.headline is None:
        raise InputError(
            f"the fixed limits are for latencies of models and services; a {workload.kind} has none",
            hint="leave out --rule", code="not_comparable",
        )  # fmt: skip
    latency = key_of(workload.headline).metric
    limits = {f"{latency}.{name}": 0.10 for name in ("mean", "p95", "p99")} | {"throughput_per_s.p50": 0.10}
    if workload.section == "load":
        limits["error_rate.mean"] = 0.01
    return tuple(_contrast(key, limit, baseline, candidate) for key, limit in limits.items())


def _contrast(key: str, limit: float, baseline: Entry, candidate: Entry) -> Contrast:
    before, after = (entry.summary.estimates.get(key) for entry in (baseline, candidate))
    metric, is_share = metric_of(key, baseline.summary.metrics), key.startswith("error_rate")
    title = f"{title_of(baseline, candidate)}: {'success rate' if is_share else key}"
    first, second = _number(before, is_share=is_share), _number(after, is_share=is_share)
    effect, conclusion = None, Conclusion.INSUFFICIENT
    if first is None or second is None:
        told = f"{title} cannot be judged: {'the baseline' if first is None else 'the candidate'} has no such number."
    elif first <= 0:
        told = f"{title} cannot be judged: the baseline is 0, so there is no percentage."
    else:
        ratio = second / first
        worse = ratio < 1 - limit if is_share or metric.better == "higher" else ratio > 1 + limit
        conclusion = Conclusion.REGRESSION if worse else Conclusion.WITHIN
        effect = Effect(value=ratio, method=_METHOD)
        verb = "exceeds" if worse else "is within"
        told = (
            f"{title} {verb} the fixed limit of {percent_text(limit)}, {effect.change} "
            f"({value_text(before)} to {value_text(after)}); "
            "it compares one number with one and ignores the spread between runs."
        )
    return Contrast(
        key=key, unit=metric.unit, better=metric.better, role="headline", family=metric.name,
        baseline=before, candidate=after, effect=effect, conclusion=conclusion, sentence=told,
    )  # fmt: skip


def _number(estimate: Estimate | None, *, is_share: bool) -> float | None:
    if estimate is None:
        return None
    return 1 - estimate.value if is_share else estimate.value
