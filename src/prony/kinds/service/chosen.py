"""Load the plug-ins that a service workload names, with their options checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from prony.errors import InputError
from prony.kinds.service.schema import ServiceWorkload
from prony.ports import plugins
from prony.ports.driver import Driver, Task
from prony.ports.service import Service

_SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class Chosen:
    """One of each kind, and what the recipe says to it; no service where the endpoint runs already, no task where the
    driver asks nothing."""

    driver: Driver
    options: Any
    service: Service | None = None
    settings: Any = None
    task: Task | None = None
    prompts: Any = None


def chosen(workload: ServiceWorkload) -> Chosen:
    """Return what a workload names; a name that no plug-in has or an option that it does not take is refused."""
    service: Service | None = None
    settings: Any = None
    if workload.service is not None:
        service = plugins.load(plugins.SERVICES, workload.service)()
        settings = options_of(service, workload.settings, "workload.settings")
    elif workload.endpoint is None:
        hint = "service: redis, or endpoint: http://host:8000 with a driver"
        raise InputError("a service workload needs a service or an endpoint", hint=hint, code="recipe")
    name = workload.driver or (service.driver if service is not None else "")
    if not name:
        raise InputError("no driver is named", hint="workload.driver: http", code="recipe")
    driver: Driver = plugins.load(plugins.DRIVERS, name)()
    options = options_of(driver, workload.options, "workload.options")
    if not driver.asks:
        if workload.task is not None or workload.prompts:
            raise InputError(f"the driver {name} asks nothing of an LLM, so it takes no task", code="recipe")
        return Chosen(driver, options, service, settings)
    task: Task = plugins.load(plugins.TASKS, workload.task or _SYNTHETIC)()
    prompts = options_of(task, workload.prompts, "workload.prompts")
    return Chosen(driver, options, service, settings, task, prompts)


def options_of(plugin: Driver | Task | Service, written: Mapping[str, Any], place: str) -> Any:
    """Return the plug-in's options, checked as strictly as the recipe itself."""
    try:
        return plugin.Options.model_validate_json(json.dumps(written), strict=True)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join([place, *map(str, first["loc"])])
        known = ", ".join(plugin.Options.model_fields)
        if first["type"] == "extra_forbidden":
            near = plugins.nearest(str(first["loc"][-1]), plugin.Options.model_fields)
            hint = f"did you mean {near}?" if near else f"{plugin.name} takes: {known or 'nothing'}"
            raise InputError(f"{where}: unknown key", hint=hint, code="recipe") from exc
        said = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"].lower()
        raise InputError(f"{where}: {said}", hint=f"{plugin.name} takes: {known}", code="recipe") from exc
