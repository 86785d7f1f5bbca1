"""A number that may be published, and the verdict on whether it may be quoted."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal

from prony.model.base import Noun
from prony.model.metric import METRICS, Metric, depends_on_machine, key_of, metric_of
from prony.model.workload import Scalar, workload_class


class Estimate(Noun):
    """No number travels alone. `low` and `high` are None where no interval can be vouched for."""

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    count: int
    level: Literal["run", "sample"] = "run"
    method: str

    @property
    def relative_half_width(self) -> float | None:
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


class Grade(StrEnum):
    """Whether a number may be quoted: yes, with a doubt, or not at all."""

    VALID = "valid"
    SUSPECT = "suspect"
    VOID = "void"


class Reason(Noun):
    """Why a number has its grade; `code` is for programs, `text` for people."""

    code: str
    text: str
    grade: Grade


class Verdict(Noun):
    """May this number be quoted? The worst of its reasons decides."""

    grade: Grade
    reasons: tuple[Reason, ...] = ()


class Outlier(Noun):
    """A sample or a run that stands apart; labelled, never dropped."""

    repetition: int
    index: int | None
    metric: str
    value: float
    label: Literal["suspicious", "severe"]


class Spread(Noun):
    """Where the variance of a metric lies: inside one run, or between runs."""

    within_sd: float
    between_sd: float
    icc: float | None
    # How many samples in a run use a given time best; None where runs do not differ or their cost is not known.
    best_count: int | None = None


class Sensitivity(Noun):
    """How much runs vary, and how small a change a comparison of so many a side shows in four of five cases."""

    runs: int
    noise: float
    detectable: float


class Missing(Noun):
    """A percentile that was asked for and cannot be published."""

    metric: str
    at_least: float | None
    count: int
    needed: int


QUANTILES: Literal["type 8"] = "type 8"
_TAILS = {"p90", "p95", "p99", "p99.9"}
# What another program reported stays as it is.
_NAMED_PERCENTILE = re.compile(r"th percentile(s| of )|^as reported by ")


class Summary(Noun):
    """Everything that analysis says of one job; computed from its result folder, and computable again."""

    job_id: str
    title: str
    cell: dict[str, Scalar] = {}
    estimates: dict[str, Estimate] = {}
    # Of a script: the metrics that are its own, by name, and the key of the one that stands for it.
    metrics: dict[str, Metric] = {}
    headline: str | None = None
    # By the keys of `estimates`: the numbers of the used runs in the order of their repetitions, (failed, total) of all
    # runs together, and of each run.
    runs: dict[str, tuple[float, ...]] = {}
    counts: dict[str, tuple[int, int]] = {}
    run_counts: dict[str, tuple[tuple[int, int], ...]] = {}
    # Of what is scored item by item, as documents are: by the same keys, the score of each.
    items: dict[str, dict[str, float]] = {}
    missing: tuple[Missing, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    outlier_count: int = 0
    spread: dict[str, Spread] = {}
    sensitivity: dict[str, Sensitivity] = {}
    steady_from: dict[int, int | None] = {}
    # How percentiles within a run are taken; summaries made before this was told have those of type 7.
    quantiles: Literal["type 7", "type 8"] = "type 7"
    # How fast the machine was beside the used runs: medians of their canaries; empty in older results.
    canary: dict[str, float] = {}
    used: tuple[int, ...] = ()
    excluded: dict[int, str] = {}
    verdict: Verdict


def has_current_percentiles(summary: Summary) -> bool:
    """Are the percentiles of a stored summary what its samples would give today?

    Summaries of language models once said type 8 of type 7: the method of these does not say which percentile it is.
    """
    tails = [one.method for key, one in summary.estimates.items() if key_of(key).statistic in _TAILS]
    return summary.quantiles == QUANTILES and all(map(_NAMED_PERCENTILE.search, tails))


def headline_of(summary: Summary, kind: str) -> str | None:
    """Return the key of the number that stands for a job of this kind; None where it has none."""
    return workload_class(kind).headline or summary.headline


def metric_in(summary: Summary, key: str) -> Metric:
    """Return the metric behind a key of this summary: its own, or one of the glossary."""
    return metric_of(key, summary.metrics)


# How small a change runs that vary so much would show.
DETECTABLE_CHANGE = "detectable_change"
# What these say is that the machine was busy or slow: nothing of what was computed on it.
OF_THE_MACHINE = frozenset(("contaminated", "unwatched", "machine_slower", "thermal", "swap", "quota"))
# What makes a number partly that of the load generator.
OF_THE_LOAD = frozenset(("client_bound", "client_late", "sent_late", "client_busy", "client_unknown", "too_short"))


def verdict_on(summary: Summary, key: str) -> Verdict:
    """Return the verdict on one number: a busy machine takes nothing from what a script computed, as a loss."""
    name = key_of(key).metric
    metric = summary.metrics.get(name) or METRICS.get(name)
    if metric is None or depends_on_machine(metric):
        return summary.verdict
    reasons = tuple(one for one in summary.verdict.reasons if one.code not in OF_THE_MACHINE)
    return Verdict(grade=max((one.grade for one in reasons), key=[*Grade].index, default=Grade.VALID), reasons=reasons)
