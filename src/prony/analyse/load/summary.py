"""Summarise a job that loads a service from its result and its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from prony.analyse.estimate_set import EstimateSet
from prony.analyse.external_results import reported_figures
from prony.analyse.load.estimates import error_estimate, load_estimates
from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.load.search_result import SearchResult, search_of
from prony.analyse.load.verdict import judge_load
from prony.analyse.load.window import runs_of
from prony.analyse.outliers import outliers
from prony.analyse.runs import Run
from prony.analyse.selection import Selection, select
from prony.analyse.sensitivity import sensitivity_of, spread_of
from prony.errors import InputError
from prony.instruments.columns import Requests
from prony.model.device import Environment
from prony.model.estimate import Summary
from prony.model.job import Job
from prony.model.load import Load
from prony.model.metric import LOAD_HEADLINE
from prony.model.recipe import Measure
from prony.model.result import Repetition, Result

if TYPE_CHECKING:
    import polars as pl

_METRIC = "e2e_ms"


def summarise_load(
    job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
) -> Summary:
    """Summarise one load: one number a run, an interval over runs, and the verdict on the measurement.

    The same input always gives the same summary, and the order of rows and repetitions does not matter.
    """
    return summarise_runs(job, result, runs_of(samples, job.load, result.repetitions), environment=environment)


def summarise_runs(
    job: Job, result: Result, runs: Mapping[int, Requests], *, environment: Environment | None = None
) -> Summary:
    """The same of runs that were taken out of their samples: whoever has many need not keep both."""
    if job.id != result.job_id:
        raise InputError(f"job {job.id} and the result of job {result.job_id} do not belong together")
    repetitions = _with_stopped(result.repetitions, runs) if job.load.search is None else result.repetitions
    known = {repetition.index: repetition for repetition in repetitions}
    good = {index: run for index, run in runs.items() if index in known and known[index].state == "ok"}
    searched = search_of(job.load, repetitions, good)
    selection = _select_runs(job.load, repetitions, good, searched)
    used = tuple(good[repetition.index] for repetition in selection.used)
    judged = used if searched is not None else tuple(good.values())
    figures, missing = load_estimates(used, job.load.slo)
    figures |= error_estimate(judged) | (searched.figures if searched is not None else EstimateSet())
    figures |= reported_figures(result.reported)
    measured = tuple(_build_run(run) for run in used)
    listed, outlier_count = outliers(measured, _METRIC)
    evidence = LoadEvidence(
        job, result, selection, measured, figures.estimates.get(LOAD_HEADLINE), environment,
        load=job.load, used=used, all_runs=judged, estimates=figures.estimates, searched=searched,
        sides={index: one.client for index, one in known.items() if one.client is not None},
    )  # fmt: skip
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell,
        estimates=figures.estimates, runs=figures.runs, counts=figures.counts,
        missing=tuple(missing), spread=spread_of(_METRIC, [run.moments for run in measured]),
        sensitivity=sensitivity_of(figures.runs),
        outliers=listed, outlier_count=outlier_count,
        steady_from={index: _build_run(run).steady_from for index, run in good.items() if run.latency_rows.any()},
        used=tuple(run.repetition for run in used), excluded=selection.excluded,
        verdict=judge_load(evidence),
    )  # fmt: skip


def _with_stopped(repetitions: Sequence[Repetition], runs: Mapping[int, Requests]) -> tuple[Repetition, ...]:
    """Let a run that somebody stopped count where no other one does: its rows are as good, and only fewer."""
    if any(one.state == "ok" for one in repetitions):
        return tuple(repetitions)
    return tuple(
        one.model_copy(update={"state": "ok"}) if one.state == "cancelled" and one.index in runs else one
        for one in repetitions
    )


def _select_runs(
    load: Load, repetitions: Sequence[Repetition], good: Mapping[int, Requests], searched: SearchResult | None
) -> Selection:
    """Choose the runs that count: of a search, those of the highest load that held and no other."""
    chosen = [one for one in repetitions if searched is None or searched.counts(one)]
    selection = select(
        chosen,
        Measure(repeats=len(chosen) or 1) if searched is not None else Measure(repeats=load.repeats),
        measured={index for index, run in good.items() if run.latency_rows.any()},
        loaded=(),
        restless={index for index, run in good.items() if run.window.steady is False},
    )
    if searched is None:
        return selection
    return replace(selection, excluded=selection.excluded | searched.reasons_excluded(repetitions))


def _build_run(requests: Requests) -> Run:
    """Return the successes of the window as samples of a run, for what is said of samples of every kind."""
    timed = requests.latency_rows
    indices = requests.numbers["index"][timed]
    return Run(
        repetition=requests.repetition,
        steady_from=None if requests.window.steady is False else int(indices[0]),
        indices=indices,
        durations_ns=(requests.numbers["end_ns"] - requests.numbers["begin_ns"])[timed],
        window_ns=requests.window.length_ns,
        taken=int(np.count_nonzero(requests.began_in_window)),
    )
