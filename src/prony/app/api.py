"""What a job needs before it is kept: an id, names that plug-ins have, and paths that mean the same anywhere."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.app.scripts import anchored_script, check_script
from prony.app.services import anchored_service, check_service
from prony.model.job import Job
from prony.model.recipe import ServiceWorkload
from prony.model.script import ScriptWorkload
from prony.ports import plugins
from prony.ports.models import scheme_of

if TYPE_CHECKING:
    pass

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_EPOCH_S = 1_735_689_600  # 2025-01-01: ids stay short for decades


def new_id(now_s: float, chance: int = 3) -> str:
    """Return a short id that sorts by time: six characters of seconds, and some of chance; more where many are made."""
    number, text = int(now_s - _EPOCH_S), ""
    for _ in range(6):
        number, digit = divmod(number, 32)
        text = _ALPHABET[digit] + text
    return text + "".join(secrets.choice(_ALPHABET) for _ in range(chance))


def check_names(jobs: Sequence[Job]) -> None:
    """Refuse a name that no plug-in has before anything is stored: it is a slip of the pen and not a result."""
    for job in jobs:
        if isinstance(job.workload, ServiceWorkload):
            check_service(job)
        elif isinstance(job.workload, ScriptWorkload):
            check_script(job)
        else:
            plugins.target(plugins.ENGINES, job.workload.engine)
            plugins.target(plugins.MODELS, scheme_of(job.workload.model))


def make_paths_absolute(job: Job, base: Path) -> Job:
    """Return the job with paths that mean the same from any folder."""
    workload = job.workload
    if isinstance(workload, ServiceWorkload):
        return anchored_service(job, base)
    if isinstance(workload, ScriptWorkload):
        return anchored_script(job, base)
    model = workload.model
    if scheme_of(model) == "file":
        model = _anchored_path(model, base)
    values = {
        name: spec.model_copy(update={"file": _absolute(base, spec.file)}) if spec.file else spec
        for name, spec in workload.inputs.values.items()
    }
    inputs = workload.inputs.model_copy(update={"values": values})
    return job.model_copy(update={"workload": workload.model_copy(update={"model": model, "inputs": inputs})})


def _anchored_path(model: str, base: Path) -> str:
    if model.startswith("file://"):
        return model  # refused by its job, with a hint
    text = model.removeprefix("file:")
    return _absolute(base, os.path.expanduser(text))  # noqa: PTH111 - leaves the home of an unknown user as it is


def _absolute(base: Path, text: str) -> str:
    """Return where a path leads from `base`; what is wrong with it is told where it is read, by its own job."""
    path = base / text
    try:
        return str(path.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that is too long or holds a NUL, a circle of links
        return str(path)
