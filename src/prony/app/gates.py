"""Judge the gates of an experiment's recipe, regressions against the last good experiment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prony.analyse.gates import Worsening, judge_gates
from prony.app.results import renew_summary
from prony.errors import InputError
from prony.model.estimate import Estimate, Grade, Summary, metric_in, verdict_on
from prony.model.experiment import ExperimentState
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.gate import GateOutcome, GateReport, parse_gate, trouble_of_kind
from prony.model.result import ResultState
from prony.model.workload import Workload
from prony.stats.shift import ratio
from prony.store import series
from prony.store.database import reading
from prony.store.store import Store

# How far back an earlier experiment of the same name is looked for.
_MOST_EARLIER = 50


def gate_outcomes(store: Store, data: ExperimentData, more: Sequence[str] = ()) -> tuple[GateOutcome, ...]:
    """Judge the gates of a recipe, and `more` of them, on every job that has a result."""
    gates = [*data.experiment.recipe.gates, *more]
    if not gates:
        return ()
    found: list[GateOutcome] = []
    for entry in data.entries:
        worsening = _against_earlier(store, data, entry)
        failed = entry.result.state is ResultState.FAILED
        found += judge_gates(gates, entry.summary, worsening, failed=failed)
    return tuple(found)


def gate_report(store: Store, data: ExperimentData, *, strict: bool, more: Sequence[str] = ()) -> GateReport:
    """The same as one noun; an experiment without gates is no report but a question back."""
    for text in more:
        _check(text, data.experiment.recipe.workload)
    if not data.experiment.recipe.gates and not more:
        hint = "write `gates:` into the recipe, or give one: --gate 'e2e_ms.p99 <= 20'"
        raise InputError(f"experiment {data.experiment.id} has no gates", hint=hint, code="no_gates")
    outcomes = (*data.gates, *(gate_outcomes(store, _without_gates(data), more) if more else ()))
    experiment = data.experiment
    return GateReport(experiment_id=experiment.id, name=experiment.name, strict=strict, outcomes=outcomes)


def _check(text: str, workload: Workload) -> None:
    try:
        parse_gate(text, workload.metric_units)
        trouble = trouble_of_kind(text, workload)
    except ValueError as exc:
        raise InputError(f"gate {text!r}: {exc}", code="gate") from exc
    if trouble is not None:
        raise InputError(f"gate {trouble}", code="gate")


def _without_gates(data: ExperimentData) -> ExperimentData:
    recipe = data.experiment.recipe.model_copy(update={"gates": ()})
    return data.model_copy(update={"experiment": data.experiment.model_copy(update={"recipe": recipe})})


def _against_earlier(store: Store, data: ExperimentData, entry: Entry) -> Worsening:
    """Return how to say by how much a metric of this job got worse: since the baseline of its series, where one is
    pinned, or else since the last good experiment of its name.

    Good is complete, on the same hardware, with the same cell of the matrix and a verdict that is not void.
    """

    def worsening(key: str) -> Estimate | str:
        earlier = _baseline_summary(store, entry) or _last_good(store, data, entry, key)
        if earlier is None:
            return (
                f"There is no earlier complete experiment called {data.experiment.name} on this hardware with this "
                "cell and a verdict that is not void: this one is the first."
            )
        return worsening_between(key, earlier, entry.summary)

    return worsening


def _baseline_summary(store: Store, entry: Entry) -> Summary | None:
    """Return the summary of the baseline of this job's series; None where none is pinned, or this is the one."""
    with reading(store.engine) as connection:
        series_id = series.series_of_job(connection, entry.job.id)
        found = series.find_baseline(connection, series_id) if series_id is not None else None
    if found is None or found.job_id == entry.job.id:
        return None
    record = store.record(found.job_id)
    if record is None:
        return None
    return renew_summary(record.summary, record.folder)


def _last_good(store: Store, data: ExperimentData, entry: Entry, key: str) -> Summary | None:
    """Return the summary of the same job in the latest earlier experiment whose number may be quoted."""
    mine, hardware_id = data.experiment, entry.environment.device.hardware_id
    earlier = store.experiments(_MOST_EARLIER, name=mine.name, state=ExperimentState.COMPLETE)
    for experiment in earlier:
        is_later = (experiment.created_at, experiment.id) >= (mine.created_at, mine.id)
        if is_later or experiment.confirms is not None:
            continue
        for record in store.records(experiment.id):
            summary = record.summary
            if summary.cell != entry.summary.cell or verdict_on(summary, key).grade is Grade.VOID:
                continue
            there = store.environment(record.job_id)
            if there is not None and there.device.hardware_id == hardware_id:
                return renew_summary(summary, record.folder)
    return None


def worsening_between(key: str, before: Summary, after: Summary) -> Estimate | str:
    """Return the share by which it got worse: of what is better lower as it grew, of the rest as it shrank."""
    old, new = (np.array(one.runs.get(key, ()), dtype=np.float64) for one in (before, after))
    if not old.size or not new.size:
        return f"{key} has no numbers of single runs {'here' if not new.size else f'in {before.job_id}'}."
    if min(old.min(), new.min()) <= 0 or not (np.isfinite(old).all() and np.isfinite(new).all()):
        return f"{key} is 0 or not finite in some run: that cannot be compared as a ratio."
    better = metric_in(after, key).better
    if better == "neither":
        return f"Nobody says which way of {key} is better: workload.metrics has `better`."
    is_lower = better == "lower"
    found = ratio(old, new) if is_lower else ratio(new, old)
    return Estimate(
        value=found.value - 1, unit="1", low=None if found.low is None else found.low - 1,
        high=None if found.high is None else found.high - 1, confidence=found.confidence, count=int(new.size),
        method=f"Hodges and Lehmann's ratio of {new.size} runs to {old.size} of {before.job_id}",
    )  # fmt: skip
