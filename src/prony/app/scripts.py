"""A script's job in, an error where it cannot be run as it is written out; and its paths made absolute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.model.job import Job
from prony.model.script import ScriptSource


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


def anchored_script(job: Job, base: Path) -> Job:
    """Return the job with paths that mean the same from any folder."""
    workload = job.script
    changes: dict[str, Any] = {"sources": tuple(_anchored(source, base) for source in workload.sources)}
    if workload.directory is not None and not workload.directory.startswith("sha256:"):
        changes["directory"] = str(directory_of(workload.directory, base))
    if workload.server is not None:
        sources = tuple(_anchored(source, base) for source in workload.server.sources)
        changes["server"] = workload.server.model_copy(update={"sources": sources})
    return job.model_copy(update={"workload": workload.model_copy(update=changes)})


def directory_of(directory: str, base: Path) -> Path:
    """Return the folder, or its archive; where the archive is not there, the folder that it would be made of."""
    path = base / Path(directory).expanduser()
    unpacked = path.with_suffix("")
    return (unpacked if path.suffix == ".tar" and not path.exists() and unpacked.is_dir() else path).absolute()


def _anchored(source: ScriptSource, base: Path) -> ScriptSource:
    if "://" in source.source:
        return source
    path = (base / Path(source.source).expanduser()).absolute()
    return source.model_copy(update={"source": str(path)})
