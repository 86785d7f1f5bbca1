"""Find the task that a workload names, with its options checked as strictly as the recipe itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from prony.errors import InputError
from prony.kinds.service.schema import ServiceWorkload
from prony.ports import plugins
from prony.ports.driver import Driver, Task
from prony.ports.service import Service

_SYNTHETIC = "synthetic"


def find_task(workload: ServiceWorkload) -> tuple[Task, Any]:
    """Return the task and its options; a name that no plug-in has or an option that it does not take is refused."""
    task: Task = plugins.load_plugin(plugins.TASKS, workload.task or _SYNTHETIC)()
    return task, read_plugin_options(task, workload.prompts, "workload.prompts")


def read_plugin_options(plugin: Driver | Task | Service, written: Mapping[str, Any], place: str) -> Any:
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
