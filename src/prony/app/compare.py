"""Compare stored experiments or jobs; the first one named is the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from prony.app.experiment_data import gather_results, resolve_reference
from prony.app.results import with_runs
from prony.errors import InputError, NotFoundError
from prony.model.comparison import Comparison, Terms
from prony.model.experiment_data import Entry
from prony.store.store import Store


def compare(store: Store, names: Sequence[str], terms: Terms) -> Comparison:
    """Compare experiments, or single jobs of them; the first is the baseline."""
    from prony.analyse.compare.compare import compare as compared
    from prony.analyse.compare.matching import Side

    if len(set(names)) < len(names):
        raise InputError("the same experiment or job is named twice", hint="it would be compared with itself")
    sides = [Side(name, tuple(with_runs(entry) for entry in _entries(store, name))) for name in names]
    machines = {entry.environment.device.hardware_id for side in sides for entry in side.entries}
    calibration = store.latest_calibration(machines.pop()) if len(machines) == 1 else None
    return compared(sides, terms, calibration)


def _entries(store: Store, name: str) -> tuple[Entry, ...]:
    """Return the entries of an experiment, or the one of a job: its id is the experiment's with a number."""
    experiment_id, job_id = resolve_reference(store, name)
    if job_id is None:
        return gather_results(store, experiment_id).entries
    mine = tuple(entry for entry in gather_results(store, experiment_id).entries if entry.job.id == job_id)
    if mine:
        return mine
    known = any(job.id == job_id for job in store.jobs(experiment_id))
    hint = "wait for it" if known else f"`prony show {experiment_id}` shows its jobs"
    raise NotFoundError(f"job {job_id} has no result" if known else f"no job {job_id!r}", hint=hint, code="no_result")
