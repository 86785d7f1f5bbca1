"""List the services, drivers and tasks that are installed, and the options that each takes."""

from __future__ import annotations

from typing import Any

from prony.model.base import Noun
from prony.ports import plugins


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
