"""Make the executor of a target for a test, and look at its runs until something is seen."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.model.target import Handle, Observation, OptionValue, PlacePhase, Target
from prony.ports import plugins
from prony.ports.clock import SystemClock
from prony.ports.executor import Executor, ExecutorSite
from servers.kubernetes import Kubernetes

PATIENCE_S = 90.0


def target_options(kind: str, request: pytest.FixtureRequest, folder: Path) -> dict[str, OptionValue]:
    """Return the options of a target of a kind, in a folder of its own, with a server that was started for it."""
    if kind == "kubernetes":
        cluster: Kubernetes = request.getfixturevalue("kubernetes")
        return cluster.options(folder.parent)
    options: dict[str, OptionValue] = {"prefix": str(folder), "python": sys.executable}
    if kind != "slurm":
        options["lock"] = str(folder / "lock")
    if kind == "ssh":
        options |= {"ssh": "there", "ssh_options": tuple(request.getfixturevalue("sshd").options)}
    if kind == "slurm":
        # In another time zone than this machine.
        setup = (*request.getfixturevalue("slurm").setup, "export TZ=JST-9")
        options |= {"setup": setup, "files_late_s": 2, "exclusive": False}
    return options


def make_executor(kind: str, options: dict[str, OptionValue], place: Path) -> Executor:
    site = ExecutorSite(folder=place / "c", clock=SystemClock())
    made: Executor = plugins.load_plugin(plugins.EXECUTORS, kind)(Target(name=kind, kind=kind, options=options), site)
    return made


def look_until(
    executor: Executor, handle: Handle, wanted: Callable[[Observation], bool], within_s: float = PATIENCE_S
) -> Observation:
    """Look again and again until what is wanted is seen."""
    deadline = time.monotonic() + within_s
    while True:
        seen = executor.look([handle], {})[0]
        if wanted(seen):
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(0.4)


def has_ended(seen: Observation) -> bool:
    return seen.phase in (PlacePhase.ENDED, PlacePhase.LOST)


def is_measuring(seen: Observation) -> bool:
    return any(event.kind == "started" for event in seen.events)


def printed(seen: Observation) -> dict[str, str]:
    """Return what was printed so far, by the file that it was printed to."""
    found: dict[str, list[str]] = {}
    for event in seen.events:
        if event.kind == "printed":
            found.setdefault(event.phase, []).append(event.message)
    return {name: "\n".join(texts) for name, texts in found.items()}
