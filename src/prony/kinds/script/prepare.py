"""Check a script's job, say what it needs of a device, and make its paths absolute."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.errors import CapacityError, InputError, PronyError
from prony.kinds.script.schema import ScriptSource, ScriptWorkload
from prony.model.assumption import Assumption
from prony.model.container import WITH_APPTAINER
from prony.model.job import Job
from prony.ports.plugins import nearest
from prony.ports.workload import Needs, Prepare
from prony.runner.containers import find_engine, no_engine
from prony.runner.script_folders import REFERENCE, directory_of, files_of, is_copied

if TYPE_CHECKING:
    from prony.runner.context import RunContext

# Programs whose first plain argument is a file to run, and their arguments that stand alone before it.
_INTERPRETERS = re.compile(r"python[0-9.]*|bash|sh")
_SWITCHES = ("-u", "-B", "-O", "-E", "-I", "-s", "-S", "-e", "-x", "-ex")


def _check(job: Job) -> None:
    """Refuse what no machines could run, before anything is stored."""
    work = job.work(ScriptWorkload)
    if work.launch.nodes == 1:
        return
    if work.server is not None:
        raise InputError(
            f"workload.server needs workload.launch.nodes: 1, but it is {work.launch.nodes}",
            hint="start a server that all nodes can reach, and put its address into workload.environment",
            code="recipe",
        )


def _check_containers(jobs: Sequence[Job]) -> None:
    """Refuse to run images here where no container engine works: never on the machine itself, unless it was allowed."""
    images = [image for job in jobs for image in job.work(ScriptWorkload).used_images]
    if images:
        engine, reason = find_engine()
        if engine is None:
            raise no_engine(images[0], reason)


def _unused_image_notes(jobs: Sequence[Job], machine: str) -> tuple[str, ...]:
    """Say which images are not used because that was allowed, and whose programs run in their stead."""
    works = [work for job in jobs if not (work := job.work(ScriptWorkload)).container]
    images = dict.fromkeys(one.image for work in works for one in (work, work.server) if one is not None and one.image)
    return tuple(f"image {image} is not used: the command runs directly on {machine}" for image in images)


def _engine_notes(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Say what `prony run` would refuse here for want of a container engine."""
    try:
        _check_containers(jobs)
    except CapacityError as exc:
        return (f"prony run would fail on this machine: {exc.message}; {exc.hint}",)
    return ()


def anchored_script(job: Job, base: Path) -> Job:
    """Return the job with paths that mean the same from any folder."""
    workload = job.work(ScriptWorkload)
    changes: dict[str, Any] = {"sources": tuple(_make_source_absolute(source, base) for source in workload.sources)}
    if workload.directory is not None and not workload.directory.startswith("sha256:"):
        changes["directory"] = str(directory_of(workload.directory, base))
    if workload.server is not None:
        sources = tuple(_make_source_absolute(source, base) for source in workload.server.sources)
        changes["server"] = workload.server.model_copy(update={"sources": sources})
    return job.model_copy(update={"workload": workload.model_copy(update=changes)})


def _make_source_absolute(source: ScriptSource, base: Path) -> ScriptSource:
    if "://" in source.source:
        return source
    path = (base / Path(source.source).expanduser()).absolute()
    return source.model_copy(update={"source": str(path)})


def _script_needs(workload: ScriptWorkload) -> Needs:
    """Return what starts the script: a container engine for its images, and its launcher."""
    needs: Needs = {"containers": WITH_APPTAINER} if workload.used_images else {}
    if _needs_launcher(workload):
        needs["launcher"] = workload.launch.kind
    return needs


def _needs_launcher(workload: ScriptWorkload) -> bool:
    """Say whether the agent's own launcher is meant, and nothing else will do."""
    launch = workload.launch
    if launch.kind == "process" or launch.fallback is not None or "PATH" in workload.environment:
        return False
    # The torch that counts is that of the script's interpreter, which the recipe may name by its path.
    return launch.kind != "torchrun" or "/" not in (workload.words[0] if workload.words else "")


def _check_program(workload: ScriptWorkload) -> None:
    """Refuse a command whose program is not on this machine; one in an image is not looked for."""
    if workload.used_images or not workload.words or "PATH" in workload.environment:
        return
    program = workload.words[0]
    if "/" not in program:
        _check_on_path(program)
    elif not workload.sources and "{" not in program and "$(" not in program:  # those are known only when it runs
        if Path(program).is_absolute():
            _check_absolute(program)
        else:
            _check_relative(workload, program)
    _check_script_file(workload)


def _check_absolute(program: str) -> None:
    if shutil.which(program) is not None:
        return
    if _is_file(program):
        raise _no_program(f"{program} is not executable", f"run: {shlex.join(['chmod', '+x', program])}")
    told = "is not a file" if _exists(program) else "does not exist"
    raise _no_program(f"program {program} {told}", "write the path of a program of this machine")


def _check_relative(workload: ScriptWorkload, program: str) -> None:
    """Look for it in the folder that is copied; what lies in an archive is seen when it is unpacked."""
    if workload.directory_name:
        return
    if workload.directory is None:
        hint = f"set workload.directory to the folder of {program}, for example directory: ."
        raise _no_program(f"{program} not found: the command runs in an empty folder", hint)
    folder = Path(workload.directory)
    place = folder.parent if _is_file(folder) else folder
    if folder.suffix == ".tar" or not _is_folder(place):
        return
    if not _is_file(place / program) or (_is_file(folder) and not (place / program).samefile(folder)):
        raise _no_program(f"program {program} not found in {folder}", "name a file of workload.directory")
    _check_copied(workload, place, program)
    if not workload.copy_files and not os.access(place / program, os.X_OK):  # every file of a copy can be run
        path = str(place / program)
        raise _no_program(f"{path} is not executable", f"run: {shlex.join(['chmod', '+x', path])}")


def _check_copied(workload: ScriptWorkload, folder: Path, file: str) -> None:
    """Refuse what lies beside a folder that is copied, or in what a copy leaves out."""
    if workload.copy_files and not is_copied(folder, file):
        path = os.path.normpath((folder / file).absolute())
        raise _no_program(
            f"{file} is not copied: the command runs in a copy of {folder}", f"write the absolute path: {path}"
        )


def _check_on_path(program: str) -> None:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    if "$(" in program or shutil.which(program, path=path) is not None:
        return
    near = nearest(program, _programs(path))
    hint = f"did you mean {near}?" if near else "commands run without a shell; for pipes and variables, use sh -c '...'"
    raise _no_program(f"program {program} not found on PATH", hint)


def _no_program(message: str, hint: str) -> InputError:
    return InputError(message, hint=hint, code="no_script_program")


def _check_script_file(workload: ScriptWorkload) -> None:
    """Refuse `python train.py` where there is no such file; what a source brings comes later."""
    program, *rest = workload.words
    if not _INTERPRETERS.fullmatch(Path(program).name) or workload.sources or workload.directory_name:
        return
    script = next((word for word in rest if word not in _SWITCHES), "")
    if not script or script.startswith("-") or "{" in script or Path(script).is_absolute():
        return
    if workload.directory is None:
        raise InputError(
            f"{script} not found: the command runs in an empty folder",
            hint=f"set workload.directory to the folder of {script}, for example directory: .",
            code="no_script_program",
        )
    folder = Path(workload.directory)
    if not _is_folder(folder):
        return
    if not _exists(folder / script):
        near = nearest(script, _names_in(folder))
        hint = f"did you mean {near}?" if near else "name a file of workload.directory, or an absolute path"
        raise InputError(f"{script} not found in {folder.absolute()}", hint=hint, code="no_script_program")
    _check_copied(workload, folder, script)


def _programs(path: str) -> set[str]:
    return {name for folder in path.split(os.pathsep) if folder for name in _names_in(folder)}


# Those of pathlib raise where a folder is closed or a name is too long: neither can be a program that is run.


def _is_file(path: str | Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def _is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def _exists(path: str | Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def _names_in(folder: str | Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:  # closed, or no folder
        return []


# Which key an error is about, by its code.
_KEYS = {"no_script_program": "command", "no_directory": "directory", "large_directory": "directory"}


class ScriptPrepare(Prepare):
    """Before a script runs."""

    def check(self, job: Job) -> None:
        _check(job)

    def check_here(self, jobs: Sequence[Job]) -> None:
        _check_containers(jobs)

    def needs(self, workload: ScriptWorkload) -> Needs:
        return _script_needs(workload)

    def make_paths_absolute(self, job: Job, base: Path) -> Job:
        return anchored_script(job, base)

    def settings_of_checkout(self, checkout: Path, folders: Sequence[str]) -> dict[str, str]:
        """Have Python import the code of this checkout before what is installed."""
        kept = [str(checkout / one) for one in folders if (checkout / one).is_dir()]
        path = os.pathsep.join([*kept, *filter(None, [os.environ.get("PYTHONPATH")])])
        return {"workload.environment.PYTHONPATH": path}

    def try_once(self, job: Job, context: RunContext) -> tuple[Assumption, ...]:
        del context
        work = job.work(ScriptWorkload)
        if work.folder is not None and work.copy_files and REFERENCE.fullmatch(work.folder) is None:
            files_of(Path(work.folder))
        _check_program(work)
        return ()

    def images(self, job: Job) -> tuple[str, ...]:
        return job.work(ScriptWorkload).used_images

    def key_behind(self, error: PronyError) -> str:
        return f"workload.{_KEYS[error.code]}" if error.code in _KEYS else "workload"

    def notes(self, jobs: Sequence[Job], machine: str) -> tuple[str, ...]:
        return _unused_image_notes(jobs, machine)

    def refusals_here(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        return _engine_notes(jobs)


PART = ScriptPrepare()
