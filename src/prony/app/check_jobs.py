"""Check what a job needs before it is kept: an id, names that plug-ins have, enough machines and an existing target."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from prony.errors import InputError
from prony.model.job import Job
from prony.model.load import Load
from prony.ports.workload import kind_of
from prony.recipe import LoadedRecipe

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
        kind_of(job.workload).prepare.check(job)


def check_alone(jobs: Sequence[Job]) -> None:
    """Refuse a job that one machine cannot run, because the recipe wants several to."""
    for job in jobs:
        check_one_place(job.load)
    wanted = max(jobs, key=lambda job: job.machines, default=None)
    if wanted is not None and wanted.machines > 1:
        name, more = wanted.workload.agents_path, wanted.workload.processes_path
        raise InputError(
            f"{name} is {wanted.agents}, but there are no agents without a server",
            hint=f"start `prony server` and {wanted.agents} agents (`prony agent start`), then "
            "prony run RECIPE --server URL; or "
            f"--set {name}=1 with more {more}",
            code="needs_agents",
        )


def check_one_place(load: Load) -> None:
    """Refuse clients on a target of their own where the job is at none that could give them nodes."""
    if load.clients.on is not None:
        raise InputError(
            f"load.clients.on is {load.clients.on}, but the service is not on a target that can share a job with it",
            hint="name a Slurm target on the same cluster for the service: --on NAME, or place.on",
            code="clients_apart",
        )


# What `place.on` may name where no other targets are known: the machine that runs the jobs.
TARGETS = ("local",)


def check_target(loaded: LoadedRecipe, known: Sequence[str] = ()) -> None:
    """Refuse a recipe whose processes are to run where nobody can start them; `known` are names of other targets."""
    wanted = loaded.recipe.place.on
    if wanted is None or wanted in (*TARGETS, *known):
        return
    mark = loaded.marks.get(("place", "on"))
    where = "" if mark is None else f"{mark.source}:{mark.line}: " if mark.line else f"{mark.source}: "
    raise InputError(
        f"{where}no target is called {wanted!r}; known: {', '.join((*TARGETS, *known))}",
        hint="prony targets add makes one; --on local runs it as processes on this machine",
        code="unknown_target",
    )
