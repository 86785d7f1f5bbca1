"""A service's workload in, an error where a name or an option of it is none out; and its paths made absolute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.load.endpoint import make_certificate_absolute
from prony.model.base import Noun
from prony.model.job import Job
from prony.model.recipe import Option
from prony.model.script import ScriptWorkload
from prony.ports import plugins
from prony.runner.loads import chosen

# The marks of options that are one path and nothing else.
_WHOLE = (True, "slash", "there")


def check_service(job: Job) -> None:
    """Refuse what no plug-in is called, or what it does not take, before anything is stored."""
    picked = chosen(job.service)
    if job.load.clients.agents > 1 and picked.driver.makes:
        raise InputError(
            f"the driver {picked.driver.name} makes what it asks for at the endpoint, and several agents would get in "
            "each other's way",
            hint="leave load.clients.agents out, and use more load.clients.processes",
            code="recipe",
        )


def check_alone(jobs: Sequence[Job]) -> None:
    """Refuse a job that one machine cannot run, because the recipe wants several to."""
    bound = [job for job in jobs if not isinstance(job.workload, ScriptWorkload) or job.workload.launch.spread]
    wanted = max(bound, key=lambda job: job.agents, default=None)
    if wanted is not None and wanted.agents > 1:
        name, more = ("load.clients.agents", "load.clients.processes")
        if isinstance(wanted.workload, ScriptWorkload):
            name, more = ("workload.launch.nodes", "workload.launch.processes")
        raise InputError(
            f"{name} is {wanted.agents}, and without a server there are no agents",
            hint=f"`prony server`, {wanted.agents} agents (`prony agent start`), and prony run RECIPE --server URL; or "
            f"--set {name}=1 with more {more}",
            code="needs_agents",
        )


def anchored_service(job: Job, base: Path) -> Job:
    """Return the job with the paths in its options made absolute: those that a plug-in says are paths."""
    workload = job.service
    changes: dict[str, Any] = {}
    picked = chosen(workload)
    for field, plugin in (("settings", picked.service), ("options", picked.driver), ("prompts", picked.task)):
        if plugin is not None:
            changes[field] = _make_options_absolute(getattr(workload, field), plugin.Options, base)
    load = job.load
    if load.replay is not None:
        replay = load.replay.model_copy(update={"file": str((base / Path(load.replay.file).expanduser()).absolute())})
        load = load.model_copy(update={"replay": replay})
    if workload.endpoint is not None:
        changes["endpoint"] = make_certificate_absolute(workload.endpoint, base)
    return job.model_copy(update={"workload": workload.model_copy(update=changes), "load": load})


def _make_options_absolute(options: dict[str, Option], kind: Any, base: Path) -> dict[str, Option]:
    marks = {name: (field.json_schema_extra or {}).get("path") for name, field in kind.model_fields.items()}
    paths = {name: way for name, way in marks.items() if way in _WHOLE}
    return {
        name: _absolute(value, base, paths[name]) if name in paths and isinstance(value, str) and value else value
        for name, value in options.items()
    }


def _absolute(value: str, base: Path, way: bool | str) -> str:
    """Return a path made absolute; what may be a name too is one where it has no slash, or where nothing lies there."""
    path = (base / Path(value).expanduser()).absolute()
    is_name = (way == "slash" and "/" not in value) or (way == "there" and not path.exists())
    return value if is_name else str(path)


class Plug(Noun):
    """A plug-in as a list shows it; `lacks` says why a service cannot be started here."""

    name: str
    kind: str
    about: str
    driver: str = ""
    lacks: str = ""


class OptionFacts(Noun):
    """One option of a plug-in."""

    name: str
    default: str
    about: str


def services() -> list[Plug]:
    """Return every service; each is asked whether it could be started here with its own defaults."""
    return [_service(name) for name in plugins.find_plugins(plugins.SERVICES)]


def drivers() -> list[Plug]:
    return [_plug(plugins.DRIVERS, name, "driver") for name in plugins.find_plugins(plugins.DRIVERS)]


def tasks() -> list[Plug]:
    return [_plug(plugins.TASKS, name, "task") for name in plugins.find_plugins(plugins.TASKS)]


def options_of(kind: str, name: str) -> list[OptionFacts]:
    """Return what a plug-in takes; `kind` is services, drivers or tasks."""
    plugin = plugins.load({"services": plugins.SERVICES, "tasks": plugins.TASKS}.get(kind, plugins.DRIVERS), name)
    fields = plugin.Options.model_fields
    return [
        OptionFacts(name=key, default=_default(field), about=field.description or "") for key, field in fields.items()
    ]


def _default(field: Any) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ((), [], {}, ""):
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plug(group: str, name: str, kind: str) -> Plug:
    return Plug(name=name, kind=kind, about=_about(plugins.load(group, name)))


def _service(name: str) -> Plug:
    kind = plugins.load(plugins.SERVICES, name)
    service = kind()
    # Not checked: which model or which command is another question than whether its program is here.
    lacks = service.available(kind.Options.model_construct()) or ""
    return Plug(name=name, kind="service", about=_about(kind), driver=service.driver, lacks=lacks)


def _about(kind: Any) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
