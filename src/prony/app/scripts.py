"""A script's job in, an error where it cannot be run as it is written out; and its paths made absolute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prony.errors import CapacityError, InputError
from prony.model.job import Job
from prony.model.script import ScriptSource, ScriptWorkload
from prony.runner.containers import find_engine, no_engine


def check_script(job: Job) -> None:
    """Refuse what no machines could run, before anything is stored."""
    work = job.script
    if work.launch.nodes == 1:
        return
    if work.server is not None:
        raise InputError(
            f"workload.server is beside one script, and workload.launch.nodes is {work.launch.nodes}",
            hint="start the server yourself where all nodes reach it, and name it in workload.environment",
            code="recipe",
        )


def check_containers(jobs: Sequence[Job]) -> None:
    """Refuse to run images here where no container engine works: never on the machine itself, unless it was allowed."""
    images = [image for job in jobs if isinstance(job.workload, ScriptWorkload) for image in job.workload.used_images]
    if images:
        engine, reason = find_engine()
        if engine is None:
            raise no_engine(images[0], reason)


def unused_image_notes(jobs: Sequence[Job], machine: str) -> tuple[str, ...]:
    """Say which images are not used because that was allowed, and whose programs run in their stead."""
    works = [job.workload for job in jobs if isinstance(job.workload, ScriptWorkload) and not job.workload.container]
    images = dict.fromkeys(one.image for work in works for one in (work, work.server) if one is not None and one.image)
    return tuple(f"image {image} is not used: the command runs with the programs of {machine}" for image in images)


def engine_notes(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Say what `prony run` would refuse here for want of a container engine."""
    try:
        check_containers(jobs)
    except CapacityError as exc:
        return (f"prony run refuses this here: {exc.message}; {exc.hint}",)
    return ()


def anchored_script(job: Job, base: Path) -> Job:
    """Return the job with paths that mean the same from any folder."""
    workload = job.script
    changes: dict[str, Any] = {"sources": tuple(_make_source_absolute(source, base) for source in workload.sources)}
    if workload.directory is not None and not workload.directory.startswith("sha256:"):
        changes["directory"] = str(directory_of(workload.directory, base))
    if workload.server is not None:
        sources = tuple(_make_source_absolute(source, base) for source in workload.server.sources)
        changes["server"] = workload.server.model_copy(update={"sources": sources})
    return job.model_copy(update={"workload": workload.model_copy(update=changes)})


def directory_of(directory: str, base: Path) -> Path:
    """Return the folder, or its archive; where the archive is not there, the folder that it would be made of."""
    path = base / Path(directory).expanduser()
    unpacked = path.with_suffix("")
    return (unpacked if path.suffix == ".tar" and not path.exists() and unpacked.is_dir() else path).absolute()


def _make_source_absolute(source: ScriptSource, base: Path) -> ScriptSource:
    if "://" in source.source:
        return source
    path = (base / Path(source.source).expanduser()).absolute()
    return source.model_copy(update={"source": str(path)})
