"""Translate the service of an AI Factory recipe, by its type or by its command."""

from __future__ import annotations

import re
import shlex
from typing import Any

from prony.compat.ai_factory import dialect_nouns as nouns
from prony.recipe.dialects.translated_document import Draft

PLACE = ("service", "settings")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_PORTS = {
    "postgres": 5432, "chroma": 8000, "vllm": 8000, "ollama": 11434, "nginx": 80, "redis": 6379, "minio": 9000,
    "qdrant": 6333,
}  # fmt: skip
_SCHEMES = {"postgres": "postgresql", "redis": "redis"}
# What answers with success when a server of this type serves; the others are ready when they take connections.
_READY = {"chroma": "/api/v2/heartbeat", "vllm": "/v1/models", "ollama": "/api/tags", "qdrant": "/readyz"}
_ITS_OWN = "is Prony's choice: a port that is free, on this machine alone"
_ITS_FOLDER = "is Prony's choice: an empty folder, removed at the end"
_NOTES = {
    "port": _ITS_OWN,
    "host": _ITS_OWN,
    "data_dir": _ITS_FOLDER,
    "console_port": "is not used: its web pages are off",
    "db_name": "the service's own database is used",
    "auth": "is not used: a password is made for each run",
    "warmup_seconds": "is not waited: the load begins when the model is loaded",
}


def set_service(section: nouns.Service, loads: str | None, draft: Draft) -> None:
    """Set the workload's service. `loads` is the type that the client loads, which a command does not tell."""
    variables = _variables(section)
    if section.command is not None:
        _set_command(section, section.type or loads, variables, draft)
        return
    if section.type is None:
        hint = f"type: one of {', '.join(nouns.SERVICES)}; or command: COMMAND"
        draft.refuse(("service",), "says neither by its type nor by a command what is started", hint)
        return
    written = {name: value for name, value in (section.settings or {}).items() if not _VARIABLE.fullmatch(name)}
    settings = draft.read(nouns.SERVICE_SETTINGS[section.type], written, PLACE)
    if settings is None:
        return
    draft.set("workload.service", section.type, ("service", "type"))
    made = _SETTINGS[section.type](settings) if section.type in _SETTINGS else {}
    if variables:
        made["environment"] = variables
    if section.pre_run_commands:
        made["before"] = [shlex.join(["bash", "-c", line]) for line in section.pre_run_commands]
    if made:
        draft.set("workload.settings", made, PLACE)
    _tell(section, settings.model_fields_set, draft)


def model_of(section: nouns.Service) -> str | None:
    """Return the model that it serves, where its settings tell it or its type has one."""
    if section.command is not None or section.type not in ("vllm", "ollama"):
        return None
    written = (section.settings or {}).get("model")
    default = nouns.SERVICE_SETTINGS[section.type].model_fields["model"].default
    return written if isinstance(written, str) else str(default)


def _variables(section: nouns.Service) -> dict[str, Any]:
    """Return the variables of its environment: its settings have some too, in capital letters."""
    settings = {name: value for name, value in (section.settings or {}).items() if _VARIABLE.fullmatch(name)}
    plain = {name: value for name, value in settings.items() if isinstance(value, str | int | float | bool)}
    return {**plain, **(section.env or {}), **(section.environment or {})}


def _set_command(section: nouns.Service, kind: str | None, variables: dict[str, Any], draft: Draft) -> None:
    port = section.port or _PORTS.get(kind or "", 0)
    if not port:
        draft.refuse(("service", "port"), "is missing: nobody can tell where the command's server listens")
        return
    # One shell for all, so that what the lines before it export is there for the command.
    script = "\n".join([*(section.pre_run_commands or []), section.command or ""])
    base = f"http://127.0.0.1:{port}"
    scheme = _SCHEMES.get(kind or "", "http")
    user = "postgres@" if scheme == "postgresql" else ""
    settings: dict[str, Any] = {
        "command": ["bash", "-c", script],
        "endpoint": f"{scheme}://{user}127.0.0.1:{port}",
        "ready": f"{base}{_READY[kind]}" if kind in _READY else "tcp",
    }
    if variables:
        settings["environment"] = variables
    draft.set("workload.service", "command", ("service", "command"))
    draft.set("workload.settings", settings, ("service", "command"))
    if section.type is not None:
        draft.note(("service", "type"), "is not used: the command beside it wins")
    if section.settings:
        draft.note(PLACE, "are not used: they are of a type, and the command wins")


def _tell(section: nouns.Service, written: set[str], draft: Draft) -> None:
    for name in written & _NOTES.keys():
        draft.note((*PLACE, name), _NOTES[name])
    if section.port is not None:
        draft.note(("service", "port"), _ITS_OWN)


def _postgres(settings: nouns.PostgresSettings) -> dict[str, Any]:
    return {"config": settings.tuning} if settings.tuning else {}


def _vllm(settings: nouns.VllmSettings) -> dict[str, Any]:
    count = settings.tensor_parallel_size
    parallel = {"arguments": ["--tensor-parallel-size", count]} if count > 1 else {}
    return {"model": settings.model, **parallel}


def _ollama(settings: nouns.OllamaSettings) -> dict[str, Any]:
    return {"model": settings.model}


def _redis(settings: nouns.RedisSettings) -> dict[str, Any]:
    config: dict[str, Any] = {"appendonly": True} if settings.appendonly else {}
    config |= {"maxmemory": settings.maxmemory} if settings.maxmemory else {}
    if "maxmemory_policy" in settings.model_fields_set:
        config["maxmemory-policy"] = settings.maxmemory_policy
    return {"config": config} if config else {}


_SETTINGS: dict[str, Any] = {"postgres": _postgres, "vllm": _vllm, "ollama": _ollama, "redis": _redis}
