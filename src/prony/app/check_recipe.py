"""Check a recipe on this machine as far as a run gets before its first measurement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.app.check_jobs import TARGETS, check_alone, check_target
from prony.app.targets import target_names
from prony.errors import NotFoundError, PronyError
from prony.model.recipe import Matrix
from prony.ports.workload import kind_of
from prony.recipe.positions import Keys, format_path, mark_of
from prony.recipe.problems import DocumentProblem, recipe_error
from prony.store.home import home

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.model.job import Job
    from prony.recipe import LoadedRecipe

# A matrix may have thousands of jobs, and each trial loads a model.
_MOST_TRIED = 20


def check_names_with_lines(loaded: LoadedRecipe, jobs: Sequence[Job]) -> None:
    """Refuse a target and names that nothing here has, each with its line.

    Raises:
        InputError: Something that the recipe names does not exist.
    """
    check_target(loaded, target_names(loaded.recipe.place.on, home()))
    _refuse(loaded, _check_each(jobs))


def check_by_trial(bench: Bench, loaded: LoadedRecipe, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Do what a run does before its first measurement, and run each job once; return what should be known of it.

    Jobs that differ in their threads alone are run once together, and 20 at most. Of jobs for a target only the files
    that travel there are looked for.

    Raises:
        InputError: Something that the recipe names is missing, cannot be read or does not fit together, with its line.
    """
    from prony.app.try_jobs import try_jobs

    base = (loaded.path.parent if loaded.path else Path()).resolve()
    if not runs_here(loaded):
        _refuse(loaded, _find_missing_files(loaded, jobs, base))
        return (f"the jobs were not tried, because they run on {loaded.recipe.place.on}",)
    check_alone(jobs)
    if loaded.recipe.place.where:
        from prony.app.local_device import check_place

        check_place(loaded.recipe.place, bench.home.cache, bench.engines)
    ready = [kind_of(job.workload).prepare.make_paths_absolute(job, base) for job in jobs]
    unlike = list({job.workload.model_dump_json(exclude={"threads"}): job for job in reversed(ready)}.values())[::-1]
    assumed, failures = try_jobs(bench, unlike[:_MOST_TRIED], base)
    # A recipe of another program is mostly checked where its services are not: what is missing of them is a note.
    _refuse(loaded, (one for one in failures if not (loaded.dialect and one[1].code == "service_missing")))
    notes = [f"{'guess: ' if one.is_guess else ''}{one.what}; to change it: {one.key}" for one in assumed]
    if len(unlike) > _MOST_TRIED:
        notes.append(f"only {_MOST_TRIED} of {len(unlike)} jobs were tried")
    return tuple(notes)


def runs_here(loaded: LoadedRecipe) -> bool:
    """Say whether a recipe runs on this machine, and not on a target."""
    return loaded.recipe.place.on in (None, *TARGETS)


def _find_missing_files(loaded: LoadedRecipe, jobs: Iterable[Job], base: Path) -> Iterator[tuple[Job, PronyError]]:
    """Return the jobs whose files are missing; an absolute path is one of the target."""
    for job in jobs:
        alone = loaded.recipe.model_copy(update={"workload": job.workload, "matrix": Matrix()})
        for name in kind_of(job.workload).prepare.local_files(alone):
            path = Path(name.removeprefix("file:")).expanduser()
            if not path.is_absolute() and not (base / path).exists():
                yield job, NotFoundError(f"file not found: {base / path}", code="unknown_model")


def _check_each(jobs: Iterable[Job]) -> Iterator[tuple[Job, PronyError]]:
    for job in jobs:
        try:
            kind_of(job.workload).prepare.check(job)
        except PronyError as exc:
            yield job, exc


def _refuse(loaded: LoadedRecipe, failures: Iterable[tuple[Job, PronyError]]) -> None:
    problems = [_locate(loaded, job, error) for job, error in failures]
    if problems:
        raise recipe_error(problems, "if something is missing on this machine, a server may have it")


def _locate(loaded: LoadedRecipe, job: Job, error: PronyError) -> DocumentProblem:
    """Return an error of a job at the key that it is about."""
    keys = _find_key(loaded, job, error.key or kind_of(job.workload).prepare.key_behind(error))
    mark = mark_of(loaded.marks, keys)
    return DocumentProblem(
        format_path(keys), error.message, error.hint, source=mark.source, line=mark.line, column=mark.column
    )


def _find_key(loaded: LoadedRecipe, job: Job, path: str) -> Keys:
    """Return where the value of a key stands: in the matrix, on a side of a duet, or at its own place."""
    if path in job.cell:
        matrix = loaded.document.get("matrix", {})
        if path in matrix:
            return ("matrix", path, matrix[path].index(job.cell[path]))
        sides = loaded.document.get("duet", {})
        side = next((one for one in "ab" if sides.get(one, {}).get(path) == job.cell[path]), None)
        if side is not None:
            return ("duet", side, path)
    return tuple(path.split("."))
