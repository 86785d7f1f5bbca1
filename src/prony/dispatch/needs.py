"""Say which programs an agent must have to run a workload."""

from __future__ import annotations

from typing import TypedDict

from prony.model.container import ENGINES, WITH_APPTAINER
from prony.model.recipe import ServiceWorkload
from prony.model.script import ScriptWorkload
from prony.ports import plugins
from prony.ports.service import starting_option


class Needs(TypedDict, total=False):
    """The fields of a Demand."""

    service: str
    containers: tuple[str, ...]
    launcher: str


def service_needs(workload: ServiceWorkload) -> Needs:
    """Return what starts the service. Of a program that the recipe names itself only the agent's disk knows."""
    if workload.service is None:
        return {}
    kind = plugins.load(plugins.SERVICES, workload.service)
    by = starting_option(kind.Options, workload.settings)
    if by == "image":
        return {"containers": ENGINES}
    return {"service": workload.service} if by is None else {}


def script_needs(workload: ScriptWorkload) -> Needs:
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
