"""Experiments out of the store as plain folders, and such folders into a store."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from prony.errors import ConflictError, InputError, NotFoundError, StoreError
from prony.model.estimate import Summary
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.recipe import is_toml
from prony.store import delete_tree
from prony.store.bundle import (
    EXPERIMENT,
    JOBS,
    MANIFEST,
    Bundle,
    Manifest,
    bundle_files,
    check_export_target,
    checksums,
    read_bundle,
)
from prony.store.codecs import Record, experiment_row
from prony.store.folder import JOB, FolderContents, check_damage
from prony.store.home import Home
from prony.store.lock import hold_file_lock
from prony.store.store import Store


def export(store: Store, experiment_id: str, to: Path, *, overwrite: bool = False) -> Path:
    """Copy an experiment to `to`: all of it with a manifest of checksums, or nothing. Return where it is."""
    experiment = store.experiment(experiment_id)
    if experiment.state is ExperimentState.RUNNING:
        raise ConflictError(f"experiment {experiment_id} is running", hint="export it when it has ended")
    to = to.absolute()
    _check_target(store.home, to, overwrite=overwrite)
    fresh = to.with_name(f".{to.name}.{uuid.uuid4().hex}")
    with hold_file_lock(store.home.lock), _disk(to):
        try:
            fresh.mkdir(parents=True)
            _write_export(store, experiment, fresh)
            _put(fresh, to)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return to


def import_(
    store: Store, path: Path, *, summarise: Callable[[Path], Summary], check_recipe: Callable[[str, str], None]
) -> Experiment:
    """Keep what an export or a result folder holds; the same again changes nothing.

    Everything is checked before anything is kept, and summaries are computed anew from the samples. `check_recipe` is
    given a recipe's text and what to call it, and raises where it is none.
    """
    bundle = read_checked(path, check_recipe)
    return keep_bundle(store, bundle, lambda: [summarise(contents.path) for contents in bundle.results])


def read_checked(path: Path, check_recipe: Callable[[str, str], None]) -> Bundle:
    """Read and check all of an export or of result folders; nothing is kept yet."""
    with _disk(path):
        bundle = read_bundle(path)
    if text := bundle.experiment.recipe_text:
        check_recipe(text, f"the recipe in {path / EXPERIMENT}")
    return bundle


def keep_bundle(store: Store, bundle: Bundle, summarise: Callable[[], list[Summary]]) -> Experiment:
    """Keep what was read and checked, all of it or nothing; the same again changes nothing, and is not summarised."""
    with hold_file_lock(store.home.lock), _disk(store.home.results):
        store.finish_deletions()
        known = _find_same(store, bundle)
        if known is not None:
            return known
        _keep(store, bundle, summarise())
    return store.experiment(bundle.experiment.id)


# Out


def _check_target(home: Home, to: Path, *, overwrite: bool) -> None:
    if to.resolve().is_relative_to(home.results.resolve()):
        raise InputError(f"{to} is inside the store's own results", hint="export to another folder")
    check_export_target(to, overwrite=overwrite)


def _write_export(store: Store, experiment: Experiment, folder: Path) -> None:
    records = {record.job_id: record for record in store.records(experiment.id)}
    jobs = store.jobs(experiment.id)
    (folder / EXPERIMENT).write_text(experiment.model_dump_json(indent=2) + "\n", encoding="utf-8")
    _write_recipe(experiment, folder)
    for job in jobs:
        inside = folder / JOBS / job.id
        if job.id in records:
            _copy_export(records[job.id], job, inside)
        else:
            inside.mkdir(parents=True)
            (inside / JOB).write_text(job.model_dump_json(indent=2) + "\n", encoding="utf-8")
    manifest = Manifest(
        experiment_id=experiment.id,
        jobs=tuple(job.id for job in jobs),
        attempts={record.job_id: record.attempt for record in records.values()},
        files=checksums(folder),
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _copy_export(record: Record, job: Job, to: Path) -> None:
    if not record.folder.is_dir():
        raise NotFoundError(
            f"the result folder {record.folder} is gone",
            hint="if it was moved, move it back; else do not name this experiment",
        )
    check_damage(record.folder, job, record.result)  # the manifest would vouch for what is damaged
    _copy(record.folder, to)


def _write_recipe(experiment: Experiment, folder: Path) -> None:
    """Write the recipe as it was written, named by its format; one that never was text is written from the noun."""
    import yaml

    text = experiment.recipe_text or yaml.safe_dump(experiment.recipe.model_dump(mode="json"), sort_keys=False)
    name = "recipe.toml" if is_toml(text) else "recipe.yaml"  # JSON is YAML too
    (folder / name).write_text(text, encoding="utf-8")


def _put(fresh: Path, to: Path) -> None:
    """Rename the new folder into its place; the old one is away for an instant, and comes back on error."""
    if not to.exists():
        fresh.rename(to)
        return
    old = fresh.with_name(f"{fresh.name}.old")
    to.rename(old)
    try:
        fresh.rename(to)
    except OSError:
        old.rename(to)
        raise
    shutil.rmtree(old)


# In


def _find_same(store: Store, bundle: Bundle) -> Experiment | None:
    """Return the stored experiment when it holds just what is offered, None when there is none."""
    try:
        stored = store.experiment(bundle.experiment.id)
    except NotFoundError:
        return None
    offered = {job.id: (job.model_dump_json(), None) for job in bundle.jobs} | _documents(bundle.results)
    records = {record.job_id: record.result.model_dump_json() for record in store.records(stored.id)}
    kept = {job.id: (job.model_dump_json(), records.get(job.id)) for job in store.jobs(stored.id)}
    # Result folders alone say nothing of the rest of their experiment: then it is enough that they are part of it.
    same = offered.items() <= kept.items()
    if bundle.is_whole:
        same = offered == kept and experiment_row(stored) == experiment_row(bundle.experiment)
    if same:
        return stored
    raise ConflictError(
        f"a different experiment {stored.id} is stored already",
        hint=f"`prony delete {stored.id}` first; for several result folders, import the folder that holds them all",
    )


def _documents(results: tuple[FolderContents, ...]) -> dict[str, tuple[str, str | None]]:
    return {found.job.id: (found.job.model_dump_json(), found.result.model_dump_json()) for found in results}


def _keep(store: Store, bundle: Bundle, summaries: list[Summary]) -> None:
    placed: list[Path] = []
    rows: list[tuple[FolderContents, Summary, int]] = []
    try:
        for contents, summary in zip(bundle.results, summaries, strict=True):
            attempt = bundle.attempts.get(contents.job.id, 1)
            folder = store.home.result_folder(bundle.experiment.id, contents.job.id, attempt)
            if _place(store.home, contents.path, folder):
                placed.append(folder)
            rows.append((replace(contents, path=folder), summary, attempt))
        store.save_whole(bundle.experiment, bundle.jobs, rows)
    except BaseException:
        for folder in placed:
            delete_tree.remove(store.home, folder)
        raise


def _place(home: Home, source: Path, folder: Path) -> bool:
    """Copy a result folder into its place at once; False when the same is there, with no row that knows of it."""
    if folder.exists():
        if folder.samefile(source) or checksums(folder) == checksums(source):
            return False
        raise ConflictError(f"{folder} exists already and differs from {source}", hint="move one of them away")
    staged = delete_tree.staging(home)
    try:
        _copy(source, staged)
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return True


# Both


def _copy(source: Path, to: Path) -> None:
    for path in bundle_files(source):
        target = to / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        where = os.fsdecode(exc.filename) if isinstance(exc.filename, str | bytes) else folder
        hint = "check the free space and the permissions there"
        raise StoreError(f"cannot use {where}: {exc.strerror}", hint=hint) from exc
