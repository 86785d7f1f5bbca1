"""Estimate metrics from one number per run, with intervals over runs, and how small a change the runs could show.

Estimates and the numbers of the single runs behind them are kept together on their way into a summary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Self

import numpy as np

from prony.analyse.percentiles import PercentileOfRuns, RunSamples
from prony.analyse.runs import NS_PER_MS, PERCENTILES, MeasuredRun
from prony.model.estimate import Estimate, Missing, Sensitivity, Spread, Summary, metric_in
from prony.model.metric import HEADLINE, LOAD_HEADLINE, METRICS, STATISTICS, key_text
from prony.model.result import Repetition
from prony.stats.intervals import batch_mean_interval, mean_interval
from prony.stats.quantiles import Array, least_count, lower_rank, quantile
from prony.stats.run_intervals import independent_share, is_few, median_interval
from prony.stats.spread import FEWEST_RUNS, Moments, best_count, detectable_change, noise_of, split


@dataclass(frozen=True)
class EstimateSet:
    """`runs` has one number a run, in the order of the repetitions; `counts` has (failed, total) of a share.

    `refused` has why a percentile has no interval.

    A comparison is decided by these, and never by requests of several runs thrown together.
    """

    estimates: dict[str, Estimate] = field(default_factory=dict)
    runs: dict[str, tuple[float, ...]] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    run_counts: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def one(cls, key: str, estimate: Estimate, runs: Sequence[float] = (), refusal: str = "") -> Self:
        numbers = {key: tuple(float(value) for value in runs)} if len(runs) else {}
        return cls({key: estimate}, numbers, refused={key: refusal} if refusal else {})

    def __or__(self, other: EstimateSet) -> EstimateSet:
        return EstimateSet(
            self.estimates | other.estimates, self.runs | other.runs, self.counts | other.counts,
            self.run_counts | other.run_counts, self.refused | other.refused,
        )  # fmt: skip


_PLURALS = {"p50": "medians", "mean": "means", "min": "minima", "max": "maxima", "sd": "standard deviations"}
_SINGULARS = {"p50": "median", "mean": "mean", "min": "minimum", "max": "maximum", "sd": "standard deviation"}

# Of fewer runs that are skewed or have two modes, Student's t holds their mean less often than it says.
_FEWEST_RUNS_FOR_MEAN = 30


def inference_estimates(runs: Sequence[MeasuredRun], *, is_stopped: bool = False) -> EstimateSet:
    """Return every statistic of `inference_ms` that all runs have enough samples for.

    `is_stopped`: runs were made until the interval was narrow enough.
    """
    found = EstimateSet()
    for name in STATISTICS:
        found |= _inference(runs, name, is_stopped=is_stopped)
    return found


def missing_percentiles(runs: Sequence[MeasuredRun]) -> tuple[Missing, ...]:
    """Return the percentiles that cannot be published, each with the bound that the samples do support."""
    if not runs:
        return ()
    fewest = min(run.count for run in runs)
    needs = {name: least_count(q) for name, q in PERCENTILES.items() if name != "p50"}
    return tuple(
        Missing(metric=f"inference_ms.{name}", at_least=_at_least(runs, name), count=fewest, needed=needed)
        for name, needed in needs.items()
        if fewest < needed
    )


def single_estimates(  # noqa: PLR0913 - each of them is one fact about the same numbers
    metric: str,
    values: Sequence[float],
    noun: str,
    *,
    full: bool,
    operation: str = "",
    unit: str | None = None,
    is_stopped: bool = False,
) -> EstimateSet:
    """Return the estimates of a metric that has one number a run; `noun` says what the numbers are, in the plural.

    `full` adds mean, minimum, maximum and standard deviation to the median, which alone stands for the runs. `unit` is
    of a metric that is not in the glossary.
    """
    numbers = np.array([value for value in values if math.isfinite(value)], dtype=np.float64)
    if numbers.size == 0:
        return EstimateSet()
    unit = METRICS[metric].unit if unit is None else unit
    median = across_runs(numbers, unit, noun, is_stopped=is_stopped)
    found = EstimateSet.one(key_text(metric, "p50", operation), median, numbers.tolist())
    described = _estimate_spread(numbers, unit, noun) if full else {}
    return found | EstimateSet({key_text(metric, name, operation): one for name, one in described.items()})


def across_runs(
    values: Array, unit: str, noun: str, *, highs: Array | None = None, is_stopped: bool = False
) -> Estimate:
    """Return the median of one number a run with its order-statistic interval and that interval's true confidence.

    The values are in the order of the runs; `highs` are the numbers for the upper end, where they are others.
    """
    ordered, count = np.sort(values), int(values.size)
    if count == 1:
        return Estimate(
            value=float(ordered[0]), unit=unit, count=1, method=f"one {noun.removesuffix('s')}; no interval"
        )
    ranks = median_interval(values, is_stopped=is_stopped)
    if ranks is None:
        why = f"runs are correlated, and {count} are too few to correct for that"
        return without_interval(quantile(ordered, 0.5), unit, count, f"median of {count} {noun}", why)
    upper = ordered if highs is None else np.sort(highs)
    how = "order statistics"
    if is_few(count):
        how = f"smallest to largest, {independent_share(count) * 100:.3g} % if independent"
    return Estimate(
        value=quantile(ordered, 0.5), unit=unit, count=count,
        low=float(ordered[ranks.low - 1]), high=float(upper[ranks.high - 1]), confidence=ranks.confidence,
        method=f"median of {count} {noun}; {how}",
    )  # fmt: skip


def pool_runs(summaries: Sequence[Summary], key: str) -> Estimate | None:
    """Return the median of the runs of several jobs; without an interval where one of them has runs and none."""
    values = np.array([value for one in summaries for value in one.runs.get(key, ())], dtype=np.float64)
    if not values.size:
        return None
    pooled = across_runs(values, metric_in(summaries[0], key).unit, "runs")
    known = [one.estimates[key] for one in summaries if key in one.estimates]
    if pooled.low is None or not any(one.count > 1 and one.low is None for one in known):
        return pooled
    return without_interval(
        pooled.value, pooled.unit, pooled.count, f"median of {pooled.count} runs", "one of the jobs has no interval"
    )


def without_interval(value: float, unit: str, count: int, method: str, why: str) -> Estimate:
    return Estimate(value=value, unit=unit, count=count, method=f"{method}; no interval: {why}")


def percentile_estimate(
    found: PercentileOfRuns, unit: str, divisor: float = 1.0, *, is_stopped: bool = False
) -> tuple[Estimate, str]:
    """Return one percentile of several runs, or of one alone, and why it has no interval where it has none."""
    if len(found.runs) == 1:
        return _percentile_within(found, unit, divisor)
    numbers, noun = found.numbers / divisor, f"runs' {plural(found.name)}"
    refusal = found.refusal or ("" if np.isfinite(found.highs).all() else "too many requests never ended")
    if refusal:
        count = int(numbers.size)
        value = quantile(np.sort(numbers), 0.5)
        return without_interval(value, unit, count, f"median of {count} {noun}", refusal), refusal
    return across_runs(numbers, unit, noun, highs=found.highs / divisor, is_stopped=is_stopped), ""


def _percentile_within(found: PercentileOfRuns, unit: str, divisor: float) -> tuple[Estimate, str]:
    """Return a percentile of one run alone: its interval speaks of that run and of no other."""
    ordered, value = found.runs[0].ordered, float(found.numbers[0]) / divisor
    (ranks, refusal), count = found.ranks_within, int(ordered.size)
    low, high, confidence, how = None, None, None, f"no interval: {refusal}" if refusal else "no interval"
    if ranks is not None and np.isfinite(ordered[ranks.high - 1]):
        low, high = (float(ordered[rank - 1]) / divisor for rank in (ranks.low, ranks.high))
        confidence, how = ranks.confidence, f"order statistics within one run{found.widening_note}"
    estimate = Estimate(
        value=value, unit=unit, low=low, high=high, confidence=confidence, count=count, level="sample",
        method=f"{singular(found.name)} of {count} samples; {how}",
    )  # fmt: skip
    return estimate, refusal


def singular(statistic: str) -> str:
    """Return what a person calls it: `median`, `99th percentile`."""
    return _SINGULARS.get(statistic) or f"{statistic.removeprefix('p')}th percentile"


def plural(statistic: str) -> str:
    return _PLURALS.get(statistic) or f"{singular(statistic)}s"


def _inference(runs: Sequence[MeasuredRun], name: str, *, is_stopped: bool) -> EstimateSet:
    values = [run.statistic(name) for run in runs]
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if known.size == 0 or known.size < len(values):
        return EstimateSet()
    refusal = ""
    if name in PERCENTILES:
        samples = [RunSamples(run.durations_ns, run.ordered_ns) for run in runs]
        found = PercentileOfRuns(name, samples)
        estimate, refusal = percentile_estimate(found, "ms", NS_PER_MS, is_stopped=is_stopped)
    elif len(runs) == 1:
        estimate = statistic_within(runs[0].durations_ns / NS_PER_MS, name, float(known[0]), "ms")
    else:
        estimate = across_runs(known, "ms", f"runs' {plural(name)}", is_stopped=is_stopped)
    return EstimateSet.one(key_text("inference_ms", name), estimate, known.tolist(), refusal)


def statistic_within(in_time: Array, name: str, value: float, unit: str) -> Estimate:
    """Return a statistic of one run alone that is no percentile; of these only the mean has an interval."""
    interval = batch_mean_interval(in_time) if name == "mean" else None
    low, high = (None, None) if interval is None else interval
    how = "no interval" if interval is None else "Student's t of 20 stretches within one run"
    return Estimate(
        value=value, unit=unit, low=low, high=high, confidence=None if interval is None else 0.95,
        count=int(in_time.size), level="sample", method=f"{singular(name)} of {in_time.size} samples; {how}",
    )  # fmt: skip


def _estimate_spread(values: Array, unit: str, noun: str) -> Mapping[str, Estimate]:
    count = int(values.size)
    found = {"mean": _mean(values, unit, noun)}
    extremes: dict[str, Callable[[Array], float]] = {"min": np.min, "max": np.max}
    if count > 1:
        extremes["sd"] = lambda numbers: float(np.std(numbers, ddof=1))
    for name, taken in extremes.items():
        method = f"{_SINGULARS[name]} of {count} {noun}; no interval"
        found[name] = Estimate(value=float(taken(values)), unit=unit, count=count, method=method)
    return found


def _mean(values: Array, unit: str, noun: str) -> Estimate:
    count, mean, interval = int(values.size), float(np.mean(values)), mean_interval(values)
    if interval is None:
        return Estimate(value=mean, unit=unit, count=count, method=f"one {noun.removesuffix('s')}; no interval")
    if count < _FEWEST_RUNS_FOR_MEAN:
        why = f"of skewed {noun} Student's t needs {_FEWEST_RUNS_FOR_MEAN}; the median has one"
        return without_interval(mean, unit, count, f"mean of {count} {noun}", why)
    return Estimate(
        value=mean, unit=unit, low=interval[0], high=interval[1], confidence=0.95, count=count,
        method=f"mean of {count} {noun}; Student's t",
    )  # fmt: skip


def _at_least(runs: Sequence[MeasuredRun], name: str) -> float | None:
    """Return the median over runs of each run's one-sided lower bound, if every run has one."""
    ranks = [lower_rank(run.count, PERCENTILES[name]) for run in runs]
    bounds = [float(run.ordered_ns[rank - 1]) / NS_PER_MS for run, rank in zip(runs, ranks, strict=True) if rank]
    return quantile(np.sort(bounds), 0.5) if len(bounds) == len(runs) else None


_TOLD = (HEADLINE, LOAD_HEADLINE, "throughput_per_s.p50", "cold_start_ms.p50", "ttft_ms.p50")


def sensitivity_of(runs: Mapping[str, Sequence[float]], decisive: Sequence[str] = _TOLD) -> dict[str, Sensitivity]:
    """Return it of the metrics that decide a comparison; of fewer runs than a comparison needs it would promise what
    that refuses."""
    found = {}
    for key in decisive:
        values = runs.get(key, ())
        noise = noise_of(np.asarray(values, dtype=np.float64))
        if noise is not None and len(values) >= FEWEST_RUNS:
            detectable = detectable_change(noise, len(values))
            found[key] = Sensitivity(runs=len(values), noise=noise, detectable=detectable)
    return found


def spread_of(metric: str, runs: Sequence[Moments], used: Sequence[Repetition] = ()) -> dict[str, Spread]:
    """Split the variance of a metric over samples and runs; `used` tells what a run and a sample cost."""
    parts = split(runs)
    if parts is None:
        return {}
    start_ns, sample_ns = _costs_ns(used)
    best = best_count(parts, start_cost=start_ns, sample_cost=sample_ns)
    return {metric: Spread(within_sd=parts.within_sd, between_sd=parts.between_sd, icc=parts.icc, best_count=best)}


def _costs_ns(used: Sequence[Repetition]) -> tuple[float, float]:
    """Return how long it takes from loading to the first measured sample, and for one sample; zeros where unknown."""
    known = [one.phases for one in used if {"load", "measure"} <= one.phases.keys() and one.phases["measure"].count]
    if not known:
        return 0.0, 0.0
    starts = [phases["measure"].begin_ns - phases["load"].begin_ns for phases in known]
    each = [(phases["measure"].end_ns - phases["measure"].begin_ns) / phases["measure"].count for phases in known]
    return float(median(starts)), float(median(each))
