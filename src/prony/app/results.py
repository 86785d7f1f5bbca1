"""Summarise and record result folders, repair those left by a killed runner, and find damaged ones.

A result is damaged when its sample files are not what was measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import NotFoundError, StoreError
from prony.instruments.samples import SAMPLES, TELEMETRY, read_frame
from prony.model.estimate import Summary, has_current_percentiles
from prony.model.experiment import Experiment, ExperimentState
from prony.model.experiment_data import Damage, Entry, StoreCheck
from prony.model.job import Job
from prony.model.result import Failure, Result, ResultState
from prony.model.target import Placement
from prony.ports.workload import ReadColumns, kind_of
from prony.runner.folder import PARTS, compile_samples, wait_until_abandoned, write_frame, write_noun
from prony.store.folder import FolderContents, damage_in, read_noun, read_nouns
from prony.store.lock import hold_file_lock

if TYPE_CHECKING:
    from prony.store.codecs import Record
    from prony.store.store import Store  # every agent imports this module, and none has a database


def summary_of(folder: Path) -> Summary:
    """Compute what analysis says of one result folder."""
    return summarise_contents(read_nouns(folder))


def summarise_contents(contents: FolderContents) -> Summary:
    """The same of a folder that was read already, all but its samples."""
    job, result, environment = contents.job, contents.result, contents.environment
    kind = kind_of(job.workload).summary
    if contents.samples is None:
        summary = kind.summarise_stored(job, result, reader_of(contents.path), environment=environment)
    else:
        summary = kind.summarise(job, result, contents.samples, environment=environment)
    return kind.add_scores(job, contents.path, summary)


def reader_of(folder: Path) -> ReadColumns:
    """Return what reads the samples of a result folder."""
    return partial(read_frame, folder, SAMPLES)


def with_runs(entry: Entry) -> Entry:
    """Return it with the numbers of its single runs, percentiles as they are taken today.

    What was stored before the numbers were kept, or with other percentiles, is computed again.
    """
    stored = entry.summary
    is_whole = bool(stored.runs) and stored.run_counts.keys() >= stored.counts.keys()
    summary = renew_summary(stored, entry.folder) if is_whole else _summarise_again(stored, entry.folder)
    return entry if summary is stored else entry.model_copy(update={"summary": summary})


def renew_summary(summary: Summary, folder: Path) -> Summary:
    """Return a stored summary as it is; one with percentiles of another type is computed again."""
    return summary if has_current_percentiles(summary) else _summarise_again(summary, folder)


def _summarise_again(stored: Summary, folder: Path) -> Summary:
    """Compute it from the samples, where there are any; of a kind that is not installed here it stays as stored."""
    if not stored.estimates or not folder.is_dir():
        return stored
    try:
        return summary_of(folder)
    except NotFoundError as exc:
        if exc.code != "unknown_kind":
            raise
        return stored


def record_result(store: Store, folder: Path, *, attempt: int = 1) -> Summary:
    """Keep one result; the same folder may be recorded again without harm."""
    mend(folder)
    summary = summary_of(folder)
    store.record_result(folder, summary, attempt=attempt)
    return summary


def mend(folder: Path) -> None:
    """Finish a folder whose runner was killed: the repetitions it kept become readable samples, marked partial."""
    from prony.instruments.samples import telemetry_frame

    parts = folder / PARTS
    # A folder that came from another machine came without `parts` where that was empty.
    if not parts.exists() and ((folder / SAMPLES).exists() or not is_begun(folder)):
        return
    with wait_until_abandoned(folder):
        result = read_noun(folder / "result.json", Result)
        # One that says when it ended has all its samples, and some of its parts may be removed already. One that names
        # repetitions and has neither parts nor samples is damaged: it must not be taken for one that measured nothing.
        if result.ended_at is None and (parts.exists() or not result.repetitions):
            compile_samples(folder, result)
            if not (folder / TELEMETRY).exists():
                write_frame(folder / TELEMETRY, telemetry_frame([]))
            if result.repetitions:
                ended = result.model_copy(update={"ended_at": result.repetitions[-1].started_at})
                write_noun(folder / "result.json", ended)
        shutil.rmtree(parts, ignore_errors=True)


def is_begun(folder: Path) -> bool:
    """Did the runner come so far that there is something to keep?"""
    return (folder / "result.json").exists() and (folder / "environment.json").exists()


def mark_placed(folder: Path, placement: Placement) -> None:
    """Note in a result that came from a target where it ran; it is void where its job was suspended meanwhile."""
    write_noun(folder / "placement.json", placement)
    mend(folder)
    result = read_noun(folder / "result.json", Result)
    write_noun(folder / "result.json", result.model_copy(update={"placement": placement.note()}))
    if placement.is_suspect:
        _void_suspended(folder, placement)


def _void_suspended(folder: Path, placement: Placement) -> None:
    """Make a result fail whose job was stopped and continued: the clock ran while it did not."""
    failure = Failure(
        code="suspended",
        message=f"{placement.target.name} suspended the job while it was measured",
        hint="run it again where jobs are not suspended",
        whose="prony",
    )
    result = read_noun(folder / "result.json", Result)
    write_noun(folder / "result.json", result.model_copy(update={"state": ResultState.FAILED, "failure": failure}))


def recover(store: Store) -> tuple[Experiment, ...]:
    """Bring in what runs left whose process was killed; return the experiments that ended this way."""
    if not store.orphans():
        return ()
    with hold_file_lock(store.home.lock):  # two commands may find the same wreck at once
        for experiment in store.orphans():
            for job in store.jobs(experiment.id):
                _record_wreck(store, store.home.result_folder(experiment.id, job.id))
        return store.adopt_orphans()


def _record_wreck(store: Store, folder: Path) -> None:
    if not is_begun(folder):
        return
    try:
        record_result(store, folder)
    except StoreError as exc:
        # What is damaged stays where it is and is not counted; it must not keep every command from opening the store.
        if exc.code == "store_busy":
            raise


def check_store(store: Store, experiment_id: str | None = None) -> StoreCheck:
    """Look at every standing result, or at those of one experiment; what still runs is left alone."""
    known = [store.experiment(experiment_id)] if experiment_id is not None else store.experiments()
    counts, damages = 0, []
    for one in known:
        if one.state is not ExperimentState.RUNNING:
            jobs = {job.id: job for job in store.jobs(one.id)}
            records = store.records(one.id)
            counts += len(records)
            damages += _damages_in(jobs, records)
    return StoreCheck(results=counts, damages=tuple(damages))


def _damages_in(jobs: Mapping[str, Job], records: Sequence[Record]) -> list[Damage]:
    found = []
    for record in records:
        what = damage_in(record.folder, jobs[record.job_id], record.result)
        if what is not None:
            found.append(Damage(experiment_id=jobs[record.job_id].experiment_id, job_id=record.job_id, what=what))
    return found
