"""Have a rerun use the container images of the earlier run: those that the names meant then, by their digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from prony.errors import NotFoundError
from prony.model.device import Environment
from prony.model.experiment import Experiment
from prony.model.job import Job
from prony.ports.workload import kind_of
from prony.store.codecs import Record
from prony.store.folder import ENVIRONMENT, read_noun
from prony.store.store import Store

_NAMED = "image "  # as results name a digest


def pin_images(store: Store, experiment: Experiment, jobs: Sequence[Job]) -> tuple[Experiment, list[Job]]:
    """Return an experiment and its jobs with the digests that the experiment which it reruns has in its results.

    A note says which images have none there, and so run by their names.
    """
    names = {name for job in jobs for name in kind_of(job.workload).prepare.images(job)}
    if experiment.rerun_of is None or not names:
        return experiment, list(jobs)
    before = store.jobs(experiment.rerun_of)
    found = {record.job_id: _read_digests(record) for record in store.records(experiment.rerun_of)}
    own = [job.images | found.get(job.id, {}) for job in before]
    shared: dict[str, str] = {}
    for one in own:
        shared = one | shared  # the first job's wins, where machines differ
    # The same recipe makes the same jobs, in the same order.
    pins = [shared | one for one in own] if len(own) == len(jobs) else [shared] * len(jobs)
    kept = [note for note in experiment.notes if note not in {_note_unknown(name) for name in names}]
    unknown = [_note_unknown(name) for name in sorted(names - shared.keys())]
    pinned = [job.model_copy(update={"images": _choose(one, job)}) for job, one in zip(jobs, pins, strict=True)]
    return experiment.model_copy(update={"notes": (*kept, *unknown)}), pinned


def _note_unknown(name: str) -> str:
    return f"image {name} runs by its name: the earlier results have no digest of it"


def _choose(pins: Mapping[str, str], job: Job) -> dict[str, str]:
    names = kind_of(job.workload).prepare.images(job)
    return {name: pins[name] for name in names if name in pins}


def _read_digests(record: Record) -> dict[str, str]:
    """Return the digests of a result: a script's are with its environment, a service's with what it told."""
    told = dict(record.result.service.settings) if record.result.service is not None else {}
    with suppress(NotFoundError):  # the folder was removed by hand
        told |= read_noun(record.folder / ENVIRONMENT, Environment).checksums
    return {name.removeprefix(_NAMED): value for name, value in told.items() if name.startswith(_NAMED)}
