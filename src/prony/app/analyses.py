"""Analyse stored experiments: comparison, matrix, and all that a report says beyond its own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.app.experiment_data import calibration_of, gather_results, resolve_reference
from prony.app.results import with_runs
from prony.errors import InputError, NotFoundError
from prony.model.calibration import Calibration
from prony.model.comparison import Comparison, Terms
from prony.model.estimate import Grade
from prony.model.experiment_data import AnalysedExperiment, Entry, ExperimentData
from prony.model.history import History
from prony.model.matrix import MatrixReport, MatrixTerms, Worth
from prony.store import series as rows
from prony.store.database import reading
from prony.store.store import Store

if TYPE_CHECKING:
    from prony.analyse.compare.matching import Side


def compare_stored(store: Store, names: Sequence[str], terms: Terms) -> Comparison:
    """Compare experiments, or single jobs of them; the first is the baseline."""
    from prony.analyse.compare.compare import compare_entries as compared
    from prony.analyse.compare.matching import Side

    if len(set(names)) < len(names):
        raise InputError("the same experiment or job is named twice", hint="name two different ones")
    sides = [Side(name, tuple(with_runs(entry) for entry in _entries(store, name))) for name in names]
    machines = {entry.environment.device.hardware_id for side in sides for entry in side.entries}
    calibration = _common_calibration(store, sides) if len(machines) == 1 else None
    return compared(sides, terms, calibration, _other_results(store, sides))


# More say no more, and a comparison is asked for while somebody waits.
_MOST_EARLIER = 50


def _other_results(store: Store, sides: Sequence[Side]) -> dict[str, list[dict[str, float]]]:
    """Return for each job what the other results of its series were, in their order; not those that are compared."""
    entries = [entry for side in sides for entry in side.entries]
    compared = {entry.job.id for entry in entries}
    found: dict[str, list[dict[str, float]]] = {}
    with reading(store.engine) as connection:
        for entry in entries:
            series = rows.series_of_job(connection, entry.job.id)
            points = rows.points(connection, series) if series is not None else ()
            told = [one.values for one in points if one.job_id not in compared and one.grade is not Grade.VOID]
            found[entry.job.id] = told[-_MOST_EARLIER:]
    return found


def _common_calibration(store: Store, sides: Sequence[Side]) -> Calibration | None:
    """Return the newest calibration that was valid for one of these results, an undisturbed one before others."""
    carried = [calibration_of(store, entry) for side in sides for entry in side.entries]
    known = [one for one in carried if one is not None]
    return max(known, key=lambda one: (not one.disturbed, one.taken_at, one.id), default=None)


def _entries(store: Store, name: str) -> tuple[Entry, ...]:
    """Return the entries of an experiment, or the one of a job: its id is the experiment's with a number."""
    experiment_id, job_id = resolve_reference(store, name)
    if job_id is None:
        return gather_results(store, experiment_id).entries
    mine = tuple(entry for entry in gather_results(store, experiment_id).entries if entry.job.id == job_id)
    if mine:
        return mine
    known = any(job.id == job_id for job in store.jobs(experiment_id))
    hint = f"`prony show {experiment_id}` shows its jobs and their states"
    raise NotFoundError(f"job {job_id} has no result" if known else f"no job {job_id!r}", hint=hint, code="no_result")


def matrix_over(store: Store, experiment_ids: Sequence[str], terms: MatrixTerms) -> MatrixReport:
    """Compare every job that has a result; the price of each is its own recipe's, or its machine's."""
    from prony.analyse.matrix import Priced, matrix_report

    dossiers = [gather_results(store, one) for one in dict.fromkeys(experiment_ids)]
    jobs = [Priced(with_runs(entry), one.experiment.recipe.cost) for one in dossiers for entry in one.entries]
    return matrix_report(jobs, terms)


# A page with more would be read by nobody; `prony history` has all.
_MOST_HISTORIES = 100


def analyse_experiment(store: Store, data: ExperimentData) -> AnalysedExperiment:
    """Gather what is known beyond the experiment's own numbers. Reads only: who may write judges new results first."""
    found: dict[str, Any] = {"untold": (), "methods": ()}
    entries = [with_runs(entry) for entry in data.entries]
    _compare(store, data, found)
    _place_in_history(store, entries, found)
    found["worths"] = _worths(data, entries)
    found["matrix"] = _matrix(data, entries)
    return AnalysedExperiment(**dict(data) | found)


def _compare(store: Store, data: ExperimentData, found: dict[str, Any]) -> None:
    from prony.analyse.compare.duet_sides import is_duet

    if not is_duet(data.entries):
        return
    try:
        found["comparison"] = compare_stored(store, [data.experiment.id], Terms())
    except InputError as exc:  # a side without numbers, say: the report of the other is still one
        found["untold"] += (f"The sides of the duet were not compared: {exc.message}.",)


def _place_in_history(store: Store, entries: Sequence[Entry], found: dict[str, Any]) -> None:
    from prony.analyse.history.changes_found import rules_sentence
    from prony.analyse.history.detect import Rules
    from prony.app.history import history

    with reading(store.engine) as connection:
        of_jobs = [rows.series_of_job(connection, entry.job.id) for entry in entries]
        mine = list(dict.fromkeys(one for one in of_jobs if one is not None))
        histories: list[History] = [history(connection, one) for one in mine[:_MOST_HISTORIES]]
    found["histories"] = tuple(one for one in histories if len(one.points) > 1)
    if found["histories"]:
        found["methods"] += (rules_sentence(Rules()),)
    if len(mine) > _MOST_HISTORIES:
        found["untold"] += (f"Only the first {_MOST_HISTORIES} of {len(mine)} series were checked.",)


def _worths(data: ExperimentData, entries: Sequence[Entry]) -> dict[str, tuple[Worth, ...]]:
    from prony.analyse.cost import price_of, worths_of

    cost = data.experiment.recipe.cost
    told = {one.job.id: worths_of([one], price_of(cost, one.environment.labels)) for one in entries}
    known = {job: tuple(one for one in worths if one.price or one.power_w) for job, worths in told.items()}
    return {job: worths for job, worths in known.items() if worths}


def _matrix(data: ExperimentData, entries: Sequence[Entry]) -> MatrixReport | None:
    """Compare along the two paths in which the jobs differ; None where there are fewer or more of these."""
    from prony.analyse.matrix import Priced, matrix_report

    paths = list(dict.fromkeys(path for entry in entries for path in entry.job.cell))
    varying = [path for path in paths if len({str(entry.job.cell.get(path)) for entry in entries}) > 1]
    if len(varying) != 2:
        return None
    cost = data.experiment.recipe.cost
    return matrix_report([Priced(entry, cost) for entry in entries], MatrixTerms(rows=varying[0], columns=varying[1]))
