"""Gather the data that an experiment's report is written from."""

from __future__ import annotations

from collections.abc import Sequence

from prony.errors import NotFoundError
from prony.model.calibration import Calibration
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.job_plot import JobPlot, OtherReading
from prony.ports.workload import shown_kind
from prony.store.folder import read_nouns
from prony.store.store import Store


def read_experiment_data(store: Store, experiment_id: str, *, verify: bool = False) -> ExperimentData:
    """Gather all that a report is written from, with what analysis says of the jobs together.

    `verify` looks at every file of samples, too, for results that are damaged.
    """
    data = gather_results(store, experiment_id)
    update: dict[str, object] = {}
    if data.experiment.recipe.gates:
        from prony.app.gates import gate_outcomes

        update["gates"] = gate_outcomes(store, data)
    if len(data.entries) > 1:
        from prony.app.sweeps import sweep_of

        update["sweep"] = sweep_of(data.entries)
        update["plots"] = _plots_of(store, data.entries)
    if verify:
        from prony.app.results import check_store

        update["damages"] = check_store(store, experiment_id).damages
    return data.model_copy(update=update)


def _plots_of(store: Store, entries: Sequence[Entry]) -> tuple[JobPlot, ...]:
    """Return what each kind draws of its jobs together, with what else was read of their machines."""
    found: list[JobPlot] = []
    machines = list(dict.fromkeys(entry.environment.device.hardware_id for entry in entries))
    for kind in dict.fromkeys(entry.job.workload.kind for entry in entries):
        report = shown_kind(kind).report
        mine = [entry for entry in entries if entry.job.workload.kind == kind]
        readings = [one for machine in machines for one in _readings_of(store, machine, report.bounds)]
        found += report.plots(mine, readings)
    return tuple(found)


def _readings_of(store: Store, hardware_id: str, headlines: Sequence[str]) -> list[OtherReading]:
    return [
        OtherReading(
            hardware_id=hardware_id, device=one.result.effective.device if one.result.effective is not None else "",
            job_id=one.job_id, estimates=one.summary.estimates,
        )
        for one in (store.machine_records(hardware_id, headlines) if headlines else ())
    ]  # fmt: skip


def entries_of(store: Store, experiment_ids: Sequence[str]) -> tuple[Entry, ...]:
    """Return the results of several experiments together, each experiment once."""
    return tuple(entry for one in dict.fromkeys(experiment_ids) for entry in gather_results(store, one).entries)


def resolve_reference(store: Store, text: str) -> tuple[str, str | None]:
    """Return the experiment that is meant, and the job of it where the text goes on with a job's number.

    The id of an experiment that was imported may itself end like that, so it is looked for first."""
    try:
        return store.resolve_id(text), None
    except NotFoundError:
        experiment, dash, number = text.rpartition("-")
        if not dash or not number.isdigit():
            raise
        experiment_id = store.resolve_id(experiment)
        return experiment_id, f"{experiment_id}-{number}"


def calibration_of(store: Store, entry: Entry) -> Calibration | None:
    """Return the calibration that was valid when a result was made: the one that it carries, or whose id it has."""
    there = entry.environment
    if there.calibration is not None or there.calibration_id is None:
        return there.calibration
    return store.calibration(there.calibration_id)


def gather_results(store: Store, experiment_id: str) -> ExperimentData:
    """Gather the results alone."""
    records = store.records(experiment_id)
    jobs = {job.id: job for job in store.jobs(experiment_id)}
    entries = []
    for item in records:
        contents = read_nouns(item.folder)
        entries.append(
            Entry(
                job=jobs[item.job_id],
                result=item.result,
                summary=item.summary,
                environment=contents.environment,
                folder=item.folder,
            )
        )
    calibration = calibration_of(store, entries[0]) if entries else None
    return ExperimentData(experiment=store.experiment(experiment_id), entries=tuple(entries), calibration=calibration)
