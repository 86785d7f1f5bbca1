"""Summarise a language model: one number a run of every metric, an interval over runs, and shares of the peaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prony.analyse.canaries import canary_medians
from prony.analyse.estimates import EstimateSet, percentile_estimate, sensitivity_of, single_estimates
from prony.analyse.peaks import find_peak
from prony.analyse.per_run_metrics import energy_j, on_unit, power_w
from prony.analyse.percentiles import PercentileOfRuns, RunSamples
from prony.analyse.quality import add_task_scores
from prony.analyse.runs import PERCENTILES, MeasuredRun
from prony.analyse.selection import check_result_of_job, select
from prony.kinds.llm.rules import LlmEvidence, judge_llm
from prony.kinds.llm.schema import LlmWorkload
from prony.kinds.llm.tokens import LLM_METRICS, TokenTimes, quality_values, times_by_run
from prony.model.device import Environment
from prony.model.estimate import QUANTILES, Estimate, Summary
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.metric import key_of, key_text
from prony.model.result import Repetition, Result
from prony.ports.find_task import find_task
from prony.ports.workload import Summarise
from prony.stats.intervals import mean_interval
from prony.stats.quantiles import Array, least_count, median_unbiased

if TYPE_CHECKING:
    import polars as pl

_MIB = 2**20
# Percentiles of the gaps, each with how many gaps a run must have for it.
_GAPS = {"p50": 1, "p99": least_count(PERCENTILES["p99"])}


def summarise_llm(
    job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
) -> Summary:
    """Summarise one job; the same input always gives the same."""
    check_result_of_job(job, result)
    work = job.work(LlmWorkload)
    times = times_by_run(samples)
    good = {one.index for one in result.repetitions if one.state == "ok" and one.index in times}
    selection = select(result.repetitions, job.measure, measured=good, loaded=())
    used = [times[one.index] for one in selection.used]
    by_run = [_run_numbers(one, times[one.index], work) for one in selection.used]
    figures = _figures(by_run, is_stopped=job.measure.until is not None) | _gap_figures(used)
    figures |= _facts(result) | _shares(work, result, by_run) | _quality(samples)
    headline = next(
        (f"{name}.p50" for name in ("decode_tok_s", "prefill_tok_s") if f"{name}.p50" in figures.runs), None
    )
    runs = tuple(MeasuredRun.of_whole(one) for one in selection.used)
    evidence = LlmEvidence(
        job, result, selection, runs, figures.estimates.get(headline or ""), environment,
        refused=figures.refused, estimates=figures.estimates, headlines=figures.runs.get(headline or "", ()),
    )  # fmt: skip
    names = {key_of(key).metric for key in figures.estimates}
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell, estimates=figures.estimates, runs=figures.runs,
        metrics={name: LLM_METRICS[name] for name in LLM_METRICS if name in names}, headline=headline,
        sensitivity=sensitivity_of(figures.runs, (headline,) if headline else ()),
        canary=canary_medians(selection.used), quantiles=QUANTILES, used=tuple(one.index for one in selection.used),
        excluded=selection.excluded, verdict=judge_llm(evidence),
    )  # fmt: skip


def _run_numbers(repetition: Repetition, times: TokenTimes, work: LlmWorkload) -> dict[str, float]:
    """Return every number of one run."""
    found = times.numbers(prompt=work.prompt, batch=work.batch)
    load, measure = repetition.phases.get("load"), repetition.phases.get("measure")
    if load is not None:
        found["load_ms"] = (load.end_ns - load.begin_ns) / 1e6
    if measure is not None and measure.rss_peak_kib is not None:
        found["rss_peak_mib"] = measure.rss_peak_kib / 1024
    own = on_unit(repetition, work.unit)
    joules, watts = (energy_j(own), power_w(own)) if measure is not None else (None, None)
    if watts is not None:
        found["power_w"] = watts
    if joules is not None and watts is not None:
        found |= _token_energy(joules, times, work)
    return found


def _token_energy(joules: float, times: TokenTimes, work: LlmWorkload) -> dict[str, float]:
    """Return joules a token: by each token where a job only reads or only writes, else by each token written.

    A counter does not tell reading from writing: what a prompt took is then part of what its answer costs.
    """
    written = sum(map(len, times.stamps_ns)) * work.batch
    read = times.prefill_ms.size * work.prompt * work.batch
    if work.task is None and not (written and read):
        return {"energy_j_per_token": joules / (written + read)} if written or read else {}
    return {"energy_j_per_output_token": joules / written} if written else {}


def _figures(by_run: Sequence[dict[str, float]], *, is_stopped: bool) -> EstimateSet:
    found = EstimateSet()
    for name, metric in LLM_METRICS.items():
        values = [one[name] for one in by_run if name in one]
        full = name in ("prefill_tok_s", "decode_tok_s")
        found |= single_estimates(name, values, "runs", full=full, unit=metric.unit, is_stopped=is_stopped)
    return found


def _gap_figures(times: Sequence[TokenTimes]) -> EstimateSet:
    """Return percentiles of the gaps between tokens: each run's own, and the median of them over runs."""
    found = EstimateSet()
    gaps = [RunSamples(one.gaps_ms, np.sort(one.gaps_ms)) for one in times]
    fewest = min((one.ordered.size for one in gaps), default=0)
    for name in (name for name, needed in _GAPS.items() if fewest >= needed):
        of_runs = PercentileOfRuns(name, gaps)
        estimate, refusal = percentile_estimate(of_runs, LLM_METRICS["itl_ms"].unit)
        found |= EstimateSet.one(key_text("itl_ms", name), estimate, of_runs.numbers.tolist(), refusal)
    return found


def _facts(result: Result) -> EstimateSet:
    """Return what the engine told of the model's memory."""
    details = result.effective.details if result.effective is not None else {}
    sizes = {
        "weights_mib": ("weights_bytes", _MIB), "kv_peak_mib": ("kv_peak_bytes", _MIB),
        "kv_kib_per_token": ("kv_token_bytes", 1024), "vram_run_peak_mib": ("vram_peak_bytes", _MIB),
    }  # fmt: skip
    found = EstimateSet()
    for name, (key, divisor) in sizes.items():
        if details.get(key):
            unit = LLM_METRICS[name].unit
            found |= single_estimates(name, [int(details[key]) / divisor], "runs", full=False, unit=unit)
    return found


def _shares(work: LlmWorkload, result: Result, by_run: Sequence[dict[str, float]]) -> EstimateSet:
    """Return how much of the card's published bandwidth decoding uses, and of its arithmetic reading a prompt does."""
    effective = result.effective
    if work.task is not None or effective is None or not effective.details.get("parameters"):
        return EstimateSet()
    told = effective.details
    found = EstimateSet()
    bandwidth = find_peak(effective.device, "copy_gb_s")
    # A guess reads other bytes: those of the draft model too, and not once for each token.
    if bandwidth is not None and work.draft == "none":
        held = work.depth + work.generate / 2
        step_bytes = int(told["weights_bytes"]) + held * work.batch * int(told["kv_token_bytes"])
        shares = [
            step_bytes * one["decode_tok_s"] / work.batch / 1e9 / bandwidth.value
            for one in by_run
            if "decode_tok_s" in one
        ]
        found |= single_estimates("mbu", shares, "runs", full=False, unit="1")
    peak = find_peak(effective.device, f"gemm_{effective.precision}_tflops")
    if peak is not None:
        each = 2 * int(told["parameters"]) / 1e12 / peak.value
        rates = [each * one["prefill_tok_s"] for one in by_run if "prefill_tok_s" in one]
        found |= single_estimates("mfu", rates, "runs", full=False, unit="1")
    return found


def _quality(samples: pl.DataFrame) -> EstimateSet:
    """Return how well the model predicts the text, and how far it is from the reference; intervals over positions."""
    values = quality_values(samples)
    found = EstimateSet()
    for name, key in (("kl", "kl_nat.mean"), ("top1", "top1_agreement.mean")):
        if name in values:
            found |= _of_positions(key, values[name])
    if "kl" in values and (count := values["kl"].size) >= least_count(PERCENTILES["p99"]):
        p99 = median_unbiased(np.sort(values["kl"]), PERCENTILES["p99"])
        method = f"99th percentile of {count} positions; no interval"
        known = Estimate(value=p99, unit="nat", count=count, level="sample", method=method)
        found |= EstimateSet.one("kl_nat.p99", known, [p99])
    if "nll" in values:
        found |= _of_positions("perplexity.mean", values["nll"], is_exponent=True)
    if "reference_nll" in values:
        apart = values["nll"] - values["reference_nll"]
        found |= _of_positions("perplexity_ratio.mean", apart, is_exponent=True)
    return found


def _of_positions(key: str, values: Array, *, is_exponent: bool = False) -> EstimateSet:
    turn: Callable[[float], float] = math.exp if is_exponent else float
    reach = mean_interval(values)
    value = turn(float(values.mean()))
    estimate = Estimate(
        value=value, unit=LLM_METRICS[key_of(key).metric].unit, count=values.size, level="sample",
        low=None if reach is None else turn(reach[0]), high=None if reach is None else turn(reach[1]),
        confidence=None if reach is None else 0.95, method=f"mean over {values.size} positions of a text; Student's t",
    )  # fmt: skip
    return EstimateSet.one(key, estimate, [value])


def _add_perplexity(summary: Summary) -> Summary:
    """Return the summary with the perplexity that the mean likelihood of a task's texts means."""
    found = summary.estimates.get("token_nll.mean")
    if found is None:
        return summary
    turned = {name: None if (value := getattr(found, name)) is None else math.exp(value) for name in ("low", "high")}
    known = found.model_copy(update={"value": math.exp(found.value), "unit": "1", **turned})
    metrics = {**summary.metrics, "perplexity": LLM_METRICS["perplexity"]}
    estimates = {**summary.estimates, "perplexity.mean": known}
    return summary.model_copy(update={"estimates": estimates, "metrics": metrics})


class LlmSummary(Summarise):
    """Results of language models to numbers."""

    figures = ("distribution",)

    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        return summarise_llm(job, result, samples, environment=environment)

    def add_scores(self, job: Job, folder: Path, summary: Summary) -> Summary:
        work = job.work(LlmWorkload)
        if work.task is None:
            return summary
        return _add_perplexity(add_task_scores(summary, folder, *find_task(work.task, work.prompts)))

    def drawn_metrics(self, job: Job, summary: Summary) -> tuple[str, ...]:
        del job
        return tuple(name for name in ("itl_ms", "ttft_ms") if f"{name}.p50" in summary.estimates)

    def sample_values(self, job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
        del job
        good = {one.index for one in result.repetitions if one.state == "ok"}
        times = times_by_run(samples)
        chosen = {index: one.gaps_ms if metric == "itl_ms" else one.prefill_ms for index, one in times.items()}
        return {index: values for index, values in chosen.items() if index in good and values.size}

    def work(self, entry: Entry, key: str) -> str:
        del key
        work = entry.job.work(LlmWorkload)
        name = entry.result.model.sha256[:12] if entry.result.model is not None else work.model
        if work.task is not None:
            return f"{name} {work.task} {work.prompts}"
        return f"{name} {work.prompt} {work.generate} {work.batch} {work.depth}"


PART = LlmSummary()
