"""Build the report of a sweep from its load levels: SLO checks, knee, throughput limit and highest load within the SLO.

Each SLO limit is checked at one load level by observed values, never interpolated. A percentile is the nearest rank of
each run, with failed requests as ones that never ended; the ends over runs decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from prony.analyse.bottleneck import bottleneck_of
from prony.analyse.estimates import across_runs, percentile_estimate
from prony.analyse.load.latency import RequestValues, latencies, token_latencies
from prony.analyse.load.rates import rates
from prony.analyse.percentiles import PercentileOfRuns, RunSamples
from prony.analyse.runs import PERCENTILES
from prony.analyse.sweep.curves import Group, LoadedJob, group_by_level
from prony.analyse.wording import ends, no_interval_reason, plain_number, plain_quantity
from prony.instruments.columns import Requests
from prony.model.estimate import Estimate
from prony.model.metric import METRICS, key_of
from prony.model.sweep import Claim, Curve, Level, LimitCheck, LimitState, SweepReport, format_levels
from prony.ports.metric_titles import metric_title
from prony.stats.knee import FEWEST_LEVELS, Knee, find_knee
from prony.stats.quantiles import Array, interval_ranks, least_count, nearest_rank


def checks(group: Group, slo: Mapping[str, float]) -> tuple[LimitCheck, ...]:
    """Judge every limit of a run; those of each request are what goodput counts."""
    return tuple(_check(group, key, limit) for key, limit in slo.items() if "." in key)


def goodput(group: Group, slo: Mapping[str, float]) -> Estimate | None:
    """Return what met every limit of a request, a second; None where there is no such limit or nothing to count."""
    runs = [run for job in group.counting_jobs for run in job.requests]
    found = [rate["goodput_per_s"] for run in runs if "goodput_per_s" in (rate := rates(run, slo))]
    return across_runs(np.array(found), "1/s", "runs") if found else group.estimate("goodput_per_s.p50")


def _check(group: Group, key: str, limit: float) -> LimitCheck:
    if not group.counting_jobs:
        text = f"{metric_title(key)}: {group.jobs[0].exclusion}"
        return LimitCheck(key=key, limit=limit, state=LimitState.CANNOT_TELL, text=text)
    parts = key_of(key)
    better_high = METRICS[parts.metric].better == "higher"
    runs = [run for job in group.counting_jobs for run in job.requests]
    observed = [values for run in runs if (values := _values(run, parts.metric)) is not None]
    if parts.statistic in PERCENTILES and observed and not parts.operation:
        estimate, why = _estimate_by_rank(observed, parts.metric, PERCENTILES[parts.statistic])
    else:
        estimate, why = group.estimate(key), "it was not measured"
    if estimate is None:
        return LimitCheck(key=key, limit=limit, state=LimitState.CANNOT_TELL, text=f"{metric_title(key)}: {why}")
    return _judge_limit(key, limit, estimate, better_high=better_high)


def _judge_limit(key: str, limit: float, estimate: Estimate, *, better_high: bool) -> LimitCheck:
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        value = plain_quantity(estimate.value, estimate.unit)
        text = f"{metric_title(key)} is {value} without an interval: {no_interval_reason(estimate)}"
        return LimitCheck(key=key, limit=limit, state=LimitState.CANNOT_TELL, estimate=estimate, text=text)
    inside = [end >= limit if better_high else end <= limit for end in (low, high)]
    state = LimitState.HELD if all(inside) else LimitState.CANNOT_TELL if any(inside) else LimitState.VIOLATED
    word = "at least" if better_high else "at most"
    unit = estimate.unit
    top = "never ended" if math.isinf(high) else plain_quantity(high, unit, bare=True)
    text = (
        f"{metric_title(key)} is {plain_quantity(estimate.value, unit)} [{plain_quantity(low, unit, bare=True)}, {top}]"
        f" against {word} {plain_quantity(limit, unit)}"
    )
    return LimitCheck(key=key, limit=limit, state=state, estimate=estimate, text=text)


def _values(run: Requests, metric: str) -> RequestValues | None:
    """Return what was measured of each request, with those that failed as ones that never ended."""
    found = (latencies(run) | token_latencies(run)).get(metric)
    if found is None or METRICS[metric].better != "lower" or metric.endswith("with_failures_ms"):
        return found
    lost = int(np.count_nonzero(run.began_in_window & ~run.successes))
    return found.with_lost(lost) if lost and metric != "itl_ms" else found


def _estimate_by_rank(runs: Sequence[RequestValues], metric: str, q: float) -> tuple[Estimate | None, str]:
    fewest, needed = min(values.count for values in runs), least_count(q)
    if fewest < needed:
        return None, f"a run has {fewest} requests, and this percentile needs {needed}"
    numbers = np.array([nearest_rank(values.in_order, q) for values in runs])
    if len(runs) > 1:
        return _over_runs(numbers, runs, metric, q)
    ranks = interval_ranks(fewest, q)
    if ranks is None:
        return None, "one run with too few requests"
    low, high = (float(runs[0].in_order[rank - 1]) for rank in (ranks.low, ranks.high))
    within = Estimate(
        value=float(numbers[0]), unit=METRICS[metric].unit, low=low, high=high, count=fewest, level="sample",
        confidence=ranks.confidence, method="nearest rank within one run; order statistics",
    )  # fmt: skip
    return within, ""


def _over_runs(numbers: Array, runs: Sequence[RequestValues], metric: str, q: float) -> tuple[Estimate | None, str]:
    """Return the median of the runs' nearest ranks, between ends that hold the percentile itself."""
    found = across_runs(numbers, METRICS[metric].unit, "runs' nearest ranks")
    if not np.isfinite(numbers).all():
        # The middle of two runs may be infinite where one of them is; the ends are observed values either way.
        return found if not math.isnan(found.value) else found.model_copy(update={"value": math.inf}), ""
    name = next(name for name, share in PERCENTILES.items() if share == q)
    samples = [RunSamples(values.numbers, values.in_order) for values in runs]
    held, refusal = percentile_estimate(PercentileOfRuns(name, samples), found.unit)
    if held.low is None or held.high is None:
        return None, refusal or held.method
    ends = {"low": min(held.low, found.value), "high": max(held.high, found.value), "confidence": held.confidence}
    return found.model_copy(update=ends), ""


# More load brings hardly more where it brings less than this share of what it brought at first.
GAIN_SHARE = 0.2
# What lies no further below the best belongs to the same plateau.
_PLATEAU = 0.05
THROUGHPUT = "throughput_per_s.p50"


def _knee_claim(groups: Sequence[Group], noun: str) -> tuple[Claim, Knee | None]:
    """Return where throughput stops growing with load, and the fit behind it."""
    counted = [group for group in groups if group.counting_jobs]
    if len(counted) < FEWEST_LEVELS:
        left_out = [f"{group.level:g}" for group in groups if not group.counting_jobs]
        absent = f" Left out: {', '.join(left_out)} ({_why_not(groups).rstrip('.')})." if left_out else ""
        text = (
            f"Not searched: {FEWEST_LEVELS} levels are needed, because with three the middle one always looks like a "
            f"knee. Valid levels here: {len(counted)}.{absent}"
        )
        return Claim(state="refused", text=text), None
    found = find_knee([group.level for group in counted], [group.values(THROUGHPUT) for group in counted], GAIN_SHARE)
    if found is None:
        text = "Not searched: no level has two runs, so the spread between runs is unknown. "
        return Claim(state="refused", text=text + "Use load.repeats: 3 or more."), None
    return _knee_text(found, counted, noun), found


def _knee_text(found: Knee, counted: Sequence[Group], noun: str) -> Claim:
    lowest, highest = counted[0].level, counted[-1].level
    if found.state == "bends" and found.at is not None:
        runs = sum(len(group.values(THROUGHPUT)) for group in counted)
        estimate = Estimate(
            value=found.at, unit="1", low=found.low, high=found.high, confidence=0.95, count=runs,
            method="two straight pieces through the runs of all levels; profile of their misfit",
        )  # fmt: skip
        between = "" if found.low is None else f" [{found.low:.3g}, {found.high:.3g}]"
        text = (
            f"Beyond {found.at:.3g}{between} {noun} more load adds little throughput: {_remains(found)} of what "
            "it brought "
            f"before, below the {GAIN_SHARE:.0%} at which a knee is claimed ({runs} runs at {_levels(len(counted))})."
        )
        return Claim(state="found", estimate=estimate, text=text)
    if found.state == "flat":
        text = (
            f"Throughput does not grow from {lowest:g} to {highest:g} {noun}: the knee lies at "
            f"{format_levels([lowest], noun)} or below. Lower levels would show it."
        )
        return Claim(state="found", text=text)
    if found.state == "grows":
        text = (
            f"No saturation found up to {highest:g} {noun}: the last levels still bring {_remains(found)} of what the "
            f"first brought, more than the {GAIN_SHARE:.0%} below which a knee is claimed. Higher levels may show one."
        )
        return Claim(state="not found", text=text)
    text = (
        f"Whether throughput stops growing below {highest:g} {noun} is unknown: the runs of a level vary too "
        "much, or there are too "
        "few levels near the bend. Add runs (load.repeats) or levels."
    )
    return Claim(state="cannot tell", text=text)


def _of_the_client(knee: Claim, levels: Sequence[Level], noun: str) -> str:
    """Say of a knee that it is the client's, where the client was the limit at every level from there on; else ''."""
    begin = 0.0 if knee.estimate is None or knee.estimate.low is None else knee.estimate.low
    beyond = [level for level in levels if level.load >= begin and not level.excluded]
    if knee.state != "found" or not beyond or not all(_is_of_the_client(level) for level in beyond):
        return ""
    at = format_levels([level.load for level in beyond], noun)
    return f" This is the limit of the client, not of the server: at {at} the client could not send more."


def _is_of_the_client(level: Level) -> bool:
    return level.bottleneck is not None and level.bottleneck.where == "client"


def _remains(found: Knee) -> str:
    if found.remains is None:
        return "an unknown share"
    if found.remains_low is None or found.remains_high is None:
        return f"{found.remains:.1%}"
    return f"{found.remains:.1%} [{found.remains_low:.1%}, {found.remains_high:.1%}]"


def _limit_claim(groups: Sequence[Group], knee: Claim, noun: str) -> Claim:
    """Return the most that goes through; it is a limit only where a knee was found."""
    counted = [group for group in groups if group.counting_jobs]
    shown = [(one, group) for group in counted if (one := group.estimate(THROUGHPUT)) is not None]
    if not shown:
        return Claim(state="refused", text="No level has a valid throughput.")
    best, at = max(shown, key=lambda pair: pair[0].value)
    if knee.state != "found":
        where = format_levels([at.level], noun)
        text = f"The highest throughput is {_rate(best)}, at {where}; without a knee it is no limit."
        return Claim(state="not found", estimate=best, text=text)
    begin = 0.0 if knee.estimate is None or knee.estimate.low is None else knee.estimate.low
    alike = [(one, group) for one, group in shown if group.level >= begin and _meets(one, best)]
    plateau = across_runs(np.array([value for _, group in alike for value in group.values(THROUGHPUT)]), "1/s", "runs")
    levels = format_levels([group.level for _, group in alike], noun)
    text = f"Throughput is limited to {_rate(plateau)}: {plateau.method} at {levels}."
    last, highest = shown[-1]
    if last.high is not None and plateau.low is not None and last.high < plateau.low:
        text += f" At {format_levels([highest.level], noun)} it falls to {_rate(last)}."
    return Claim(state="found", estimate=plateau, text=text)


def _meets(one: Estimate, best: Estimate) -> bool:
    """Is it of the plateau? What lies a little lower is: to take only those that overlap the best would flatter it."""
    if one.value >= (1 - _PLATEAU) * best.value:
        return True
    return one.high is not None and best.low is not None and one.high >= best.low


def _slo_claim(levels: Sequence[Level], slo: Mapping[str, float], noun: str) -> Claim | None:
    """Return the highest load up to which every level held every limit: none is skipped."""
    if not any("." in key for key in slo):
        return None
    held: Level | None = None
    for level in levels:
        states = {check.state for check in level.checks}
        if level.excluded or LimitState.VIOLATED in states or LimitState.CANNOT_TELL in states:
            return _slo_text(held, level, noun)
        held = level
    if held is None:
        return Claim(state="refused", text="No levels to check.")
    text = (
        f"Every level meets the SLO, up to {format_levels([held.load], noun)}: {_checks(held)}. The limit lies higher."
    )
    return Claim(state="found", estimate=_load(held, None), text=text)


def _slo_text(held: Level | None, broken: Level, noun: str) -> Claim:
    is_violated = any(check.state is LimitState.VIOLATED for check in broken.checks) and not broken.excluded
    bad = [check for check in broken.checks if check.state is not LimitState.HELD]
    why = broken.excluded or "; ".join(check.text for check in bad)
    judged = "is too much" if is_violated else "cannot be judged"
    beyond = f"{format_levels([broken.load], noun)} {judged}: {why.rstrip('.')}."
    if held is None:
        if is_violated:
            return Claim(state="not found", text=f"No level meets the SLO: already {beyond}")
        return Claim(state="cannot tell", text=f"It is unknown whether the lowest level meets the SLO. {beyond}")
    text = f"{format_levels([held.load], noun)} is the highest load that meets the SLO ({_checks(held)}); {beyond}"
    return Claim(state="found", estimate=_load(held, broken if is_violated else None), text=text)


def _load(held: Level, broken: Level | None) -> Estimate:
    count = held.throughput.count if held.throughput is not None else 1
    return Estimate(
        value=held.load, unit="1", low=held.load if broken else None, high=broken.load if broken else None,
        count=count, method="highest level that held with all below it; up to the lowest that did not",
    )  # fmt: skip


def _checks(level: Level) -> str:
    return "; ".join(check.text for check in level.checks)


def _why_not(groups: Sequence[Group]) -> str:
    return next(group.jobs[0].exclusion for group in groups if not group.counting_jobs).rstrip(".")


def _rate(one: Estimate) -> str:
    return f"{plain_number(one.value)}{ends(one)} a second"


def _levels(count: int) -> str:
    return f"{count} level{'' if count == 1 else 's'}"


def sweep_report(jobs: Sequence[LoadedJob], slo: Mapping[str, float] | None = None) -> SweepReport:
    """Say what the levels show; `slo` stands in the place of the limits that the recipes set, which all must share."""
    limits = dict(slo) if slo is not None else _shared_slo(jobs)
    curves = tuple(_curve(title, noun, groups, limits) for title, noun, groups in group_by_level(jobs))
    experiments = tuple(dict.fromkeys(job.entry.job.experiment_id for job in jobs))
    return SweepReport(experiments=experiments, slo=limits, gain_share=GAIN_SHARE, curves=curves)


def _shared_slo(jobs: Sequence[LoadedJob]) -> dict[str, float]:
    """Return the limits that every job has alike; one that only some have judges nothing here."""
    found = dict(jobs[0].entry.job.load.slo) if jobs else {}
    return {key: limit for key, limit in found.items() if all(job.entry.job.load.slo.get(key) == limit for job in jobs)}


def _curve(title: str, noun: str, groups: Sequence[Group], slo: Mapping[str, float]) -> Curve:
    levels = tuple(_level(group, slo) for group in groups)
    knee, _ = _knee_claim(groups, noun)
    whose = _of_the_client(knee, levels, noun)
    knee, limit = (
        one.model_copy(update={"text": one.text + whose}) for one in (knee, _limit_claim(groups, knee, noun))
    )
    return Curve(
        title=title, noun=noun, levels=levels, knee=knee, limit=limit,
        slo=_slo_claim(levels, slo, noun),
    )  # fmt: skip


def _level(group: Group, slo: Mapping[str, float]) -> Level:
    excluded = "" if group.counting_jobs else group.jobs[0].exclusion
    ended_early = max((job.entry.ended_early for job in group.counting_jobs or group.jobs), default="")
    return Level(
        load=group.level, jobs=tuple(job.entry.job.id for job in group.jobs),
        throughput=group.estimate(THROUGHPUT), goodput=goodput(group, slo),
        p50=group.estimate("e2e_ms.p50"), p99=group.estimate("e2e_ms.p99"),
        errors=group.jobs[0].entry.summary.estimates.get("error_rate.mean"),
        checks=checks(group, slo), grade=group.grade, ended_early=ended_early, excluded=excluded,
        bottleneck=bottleneck_of([(job.entry, job.telemetry) for job in group.counting_jobs or group.jobs]),
    )  # fmt: skip
