"""Judge the gates of an experiment's recipe, regressions against the last good experiment or the fork point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prony.analyse.clean_runs import CleanWorsening, worsening_of_clean
from prony.analyse.gates import judge_gates
from prony.analyse.references import RankedReferences, describe_reference, rank_earlier
from prony.app.results import renew_summary
from prony.errors import InputError
from prony.model.estimate import Estimate, Grade, Summary, metric_in, verdict_on
from prony.model.experiment import Experiment, ExperimentState
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.gate import GateOutcome, GateReport, parse_gate, trouble_of_kind
from prony.model.result import Result, ResultState
from prony.model.workload import Workload
from prony.ports.metric_titles import metric_title
from prony.stats.bootstrap import bootstrap_ratio
from prony.stats.shift import ratio
from prony.store import series
from prony.store.codecs import Record
from prony.store.database import reading
from prony.store.store import Store

# How far back an earlier experiment of the same name is looked for, those of all branches together.
_MOST_EARLIER = 500
_HINT = "write METRIC.STATISTIC, a comparison and a number: e2e_ms.p99 <= 20"


def gate_outcomes(store: Store, data: ExperimentData, more: Sequence[str] = ()) -> tuple[GateOutcome, ...]:
    """Judge the gates of a recipe, and `more` of them, on every job that has a result."""
    gates = [*data.experiment.recipe.gates, *more]
    if not gates:
        return ()
    found: list[GateOutcome] = []
    references = _References(store, data.experiment)
    for entry in data.entries:
        worsening = _Worsening(references, entry)
        failed = entry.result.state is ResultState.FAILED
        judged = judge_gates(gates, entry.summary, worsening, failed=failed, by_clean=worsening.by_clean)
        found += map(worsening.name_reference, judged)
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
        raise InputError(f"gate {text!r}: {exc}", code="gate", hint=_HINT) from exc
    if trouble is not None:
        raise InputError(f"gate {trouble}", code="gate", hint=_HINT)


def _without_gates(data: ExperimentData) -> ExperimentData:
    recipe = data.experiment.recipe.model_copy(update={"gates": ()})
    return data.model_copy(update={"experiment": data.experiment.model_copy(update={"recipe": recipe})})


@dataclass(frozen=True)
class _Reference:
    """What a job is judged against; `told` says where that comes from, and is empty where no repository is known."""

    summary: Summary
    result: Result
    told: str = ""


class _References:
    """Finds what the jobs of one experiment are judged against.

    That is the baseline of a job's series, or of the one that its branch forked from, where one is pinned; else the
    same job of an earlier experiment: the last before it on the default branch, or, of another branch, the one at its
    fork point. It must be complete, on the same hardware, with the same cell of the matrix and a verdict that is not
    void.
    """

    def __init__(self, store: Store, experiment: Experiment) -> None:
        self._store = store
        self._mine = experiment

    @property
    def mine(self) -> Experiment:
        return self._mine

    @cached_property
    def _ranked(self) -> RankedReferences[Experiment]:
        mine = self._mine
        complete = self._store.experiments(_MOST_EARLIER, name=mine.name, state=ExperimentState.COMPLETE)
        earlier = [one for one in reversed(complete) if (one.created_at, one.id) < (mine.created_at, mine.id)]
        return rank_earlier(
            mine, [one for one in earlier if one.confirms is None], lambda one: one.git, lambda one: one.created_at
        )

    @property
    def has_earlier(self) -> bool:
        """Is there a complete one before this, whether or not it can be compared with?"""
        return bool(self._ranked.items)

    def find(self, entry: Entry, key: str) -> _Reference | None:
        return self._baseline(entry) or self._earlier(entry, key)

    def _baseline(self, entry: Entry) -> _Reference | None:
        """Return the pinned result; None where none is pinned, or this is the one."""
        with reading(self._store.engine) as connection:
            point = series.point_of_job(connection, entry.job.id)
            ids = () if point is None else (point.series_id, point.base_series_id)
            pinned = [series.find_baseline(connection, one) for one in ids if one is not None]
        found = next((one for one in pinned if one is not None), None)
        if found is None or found.job_id == entry.job.id:
            return None
        record = self._store.record(found.job_id)
        return None if record is None else _Reference(renew_summary(record.summary, record.folder), record.result)

    def _earlier(self, entry: Entry, key: str) -> _Reference | None:
        """Return the same job of the best experiment whose number may be quoted."""
        git, ranked = self._mine.git, self._ranked
        for experiment in ranked.items:
            for record in self._store.records(experiment.id):
                if self._is_comparable(record, entry, key):
                    told = "" if git is None else describe_reference(git, experiment.id, experiment.git, ranked.note)
                    return _Reference(renew_summary(record.summary, record.folder), record.result, told)
        return None

    def _is_comparable(self, record: Record, entry: Entry, key: str) -> bool:
        summary = record.summary
        if summary.cell != entry.summary.cell or verdict_on(summary, key).grade is Grade.VOID:
            return False
        there = self._store.environment(record.job_id)
        return there is not None and there.device.hardware_id == entry.environment.device.hardware_id


class _Worsening:
    """Says by how much a metric of one job got worse since its reference, and remembers what that was."""

    def __init__(self, references: _References, entry: Entry) -> None:
        self._references = references
        self._entry = entry
        self._told: dict[str, str] = {}

    def __call__(self, key: str) -> Estimate | str:
        found = self._references.find(self._entry, key)
        if found is None:
            return self._missing()
        self._told[key] = found.told
        return worsening_between(key, found.summary, self._entry.summary)

    def by_clean(self, key: str) -> CleanWorsening | None:
        """Say the same by undisturbed runs alone, where some were disturbed."""
        found = self._references.find(self._entry, key)
        if found is None or key in self._entry.summary.items:
            return None
        self._told[key] = found.told
        return worsening_of_clean(key, (found.summary, found.result), (self._entry.summary, self._entry.result))

    def _missing(self) -> str:
        mine = self._references.mine
        base = None if mine.git is None else mine.git.base
        name, last = mine.name, "" if self._references.has_earlier else " This is the first one."
        if base is not None:
            name, last = f"{name} of branch {base}", f" Run it on {base}, or pin a baseline."
        return (
            f"There is no earlier result to compare with: no complete experiment called {name} has a result of this "
            f"job on this hardware that is not void.{last}"
        )

    def name_reference(self, outcome: GateOutcome) -> GateOutcome:
        """Add to the answer of a `regression(...)` what it was compared with."""
        own = {name: metric.unit for name, metric in self._entry.summary.metrics.items()}
        gate = parse_gate(outcome.gate, own)
        told = self._told.get(gate.key, "") if gate.kind == "regression" and outcome.estimate is not None else ""
        return outcome.model_copy(update={"text": f"{outcome.text} {told}"}) if told else outcome


def worsening_between(key: str, before: Summary, after: Summary) -> Estimate | str:
    """Return the share by which it got worse: of what is better lower as it grew, of the rest as it shrank."""
    if key in before.items and key in after.items:
        return _worsening_of_items(key, before, after)
    old, new = (np.array(one.runs.get(key, ()), dtype=np.float64) for one in (before, after))
    if not old.size or not new.size:
        return f"{metric_title(key)} has no values of single runs {'here' if not new.size else f'in {before.job_id}'}."
    if min(old.min(), new.min()) <= 0 or not (np.isfinite(old).all() and np.isfinite(new).all()):
        return f"{metric_title(key)} is not a finite number above 0 in every run, so there is no ratio to compare."
    better = metric_in(after, key).better
    if better == "neither":
        return (
            f"{metric_title(key)} may be better higher or lower: a script says which with `better` in workload.metrics."
        )
    is_lower = better == "lower"
    found = ratio(old, new) if is_lower else ratio(new, old)
    return Estimate(
        value=found.value - 1, unit="1", low=None if found.low is None else found.low - 1,
        high=None if found.high is None else found.high - 1, confidence=found.confidence, count=int(new.size),
        method=f"Hodges and Lehmann's ratio of {new.size} runs to {old.size} of {before.job_id}",
    )  # fmt: skip


def _worsening_of_items(key: str, before: Summary, after: Summary) -> Estimate | str:
    """Return the share by which the mean of the items got worse that both were scored on; higher scores are better."""
    both = [name for name in before.items[key] if name in after.items[key]]
    if not both:
        return f"{metric_title(key)} has no items in common with {before.job_id}."
    old, new = (np.array([one.items[key][name] for name in both]) for one in (before, after))
    if min(old.mean(), new.mean()) <= 0:
        return f"{metric_title(key)} is not above 0 on both sides, so there is no ratio to compare."
    found = bootstrap_ratio(new, old)
    how = f"ratio of the means of {len(both)} items to those of {before.job_id}; paired BCa bootstrap"
    return Estimate(
        value=found.value - 1, unit="1", low=None if found.low is None else found.low - 1,
        high=None if found.high is None else found.high - 1, confidence=None if found.low is None else 0.95,
        count=len(both), level="sample", method=how,
    )  # fmt: skip
