"""Find results in the store whose sample files are not what was measured."""

from __future__ import annotations

from prony.model.base import Noun
from prony.model.experiment import ExperimentState
from prony.store.folder import damage_in
from prony.store.store import Store


class Damage(Noun):
    """One result that is no longer what its runner left."""

    experiment_id: str
    job_id: str
    what: str


def damages_of(store: Store, experiment_id: str | None = None) -> list[Damage]:
    """Look at every standing result, or at those of one experiment; what still runs is left alone."""
    known = [store.experiment(experiment_id)] if experiment_id is not None else store.experiments()
    return [
        damage for one in known if one.state is not ExperimentState.RUNNING for damage in _in_experiment(store, one.id)
    ]


def _in_experiment(store: Store, experiment_id: str) -> list[Damage]:
    jobs = {job.id: job for job in store.jobs(experiment_id)}
    found = []
    for record in store.records(experiment_id):
        what = damage_in(record.folder, jobs[record.job_id], record.result)
        if what is not None:
            found.append(Damage(experiment_id=experiment_id, job_id=record.job_id, what=what))
    return found
