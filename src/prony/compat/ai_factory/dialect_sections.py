"""Translate the service and the clients of an AI Factory recipe.

AI Factory's clients start a process for each request; a driver here keeps a connection for each user. What a client
does in phases (all inserts, then all queries) is one load here, with the same shares in an even mix.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prony.compat.ai_factory import dialect_nouns as nouns
from prony.recipe.dialects.translated_document import Draft

_MOST_KEYS = 100_000
_PGBENCH = {"tpcb-like": "tpcb", "simple-update": "simple_update", "select-only": "select_only"}
# What the stress test of an LLM asks in turns.
_QUESTIONS = (
    "What is machine learning?",
    "Name three uses of a neural network.",
    "Why does a large model need much memory?",
    "What is a supercomputer good for?",
    "How do computers understand language?",
)


@dataclass(frozen=True)
class Asking:
    """How a client's work is asked for: `requests` are those of one client, None where `duration_s` alone ends it."""

    driver: str
    options: Mapping[str, Any]
    requests: int | None
    prompts: Mapping[str, Any] = field(default_factory=dict)
    users: int = 1  # of each client
    processes: int | None = None
    duration_s: int | None = None
    notes: Mapping[str, str] = field(default_factory=dict)  # by the key that it is about


_DATABASE = "tables are made in a schema of their own in the service's own database, and dropped at the end"


def _postgres_smoke(settings: nouns.PostgresSmoke, _: str | None) -> Asking:
    options = {"operation": "sql", "sql": settings.query}
    return Asking("postgres", options, 1, notes={"db_name": "the query runs in the service's own database"})


def _postgres_stress(settings: nouns.PostgresStress, _: str | None) -> Asking:
    each = settings.num_selects / 4
    kinds = dict.fromkeys(("point_lookup", "range_scan", "like_scan", "aggregation"), each)
    options = {"operation": "mixed", "mix": {"insert": settings.num_inserts} | kinds, "rows": settings.num_inserts}
    count = settings.num_inserts + settings.num_selects
    return Asking("postgres", options, count, notes={"table_name": _DATABASE, "db_name": _DATABASE})


def _pgbench(settings: nouns.Pgbench, _: str | None) -> Asking:
    options = {"operation": _PGBENCH[settings.builtin], "scale": settings.scale}
    count = settings.transactions if settings.duration is None else None
    processes = settings.threads if "threads" in settings.model_fields_set else None
    return Asking(
        "postgres", options, count, processes=processes, duration_s=settings.duration, notes={"db_name": _DATABASE}
    )


def _chroma_healthcheck(_: nouns.Healthcheck, __: str | None) -> Asking:
    return Asking("http", {"path": "/api/v2/heartbeat", "status": [200]}, 1)


def _nginx_healthcheck(_: nouns.Healthcheck, __: str | None) -> Asking:
    return Asking("http", {"path": "/", "status": [200]}, 1)


def _chroma_stress(settings: nouns.ChromaStress, _: str | None) -> Asking:
    count = settings.num_vectors + settings.num_queries
    options = {
        "operation": "mixed",
        "query_share": settings.num_queries / count,
        "count": settings.num_vectors,
        "dim": settings.dim,
        "top_k": settings.top_k,
        "batch_size": 1,
    }
    return Asking("chroma", options, count)


def _qdrant_stress(settings: nouns.QdrantStress, _: str | None) -> Asking:
    inserts = -(-settings.num_points // settings.batch_size)
    count = inserts + settings.num_queries
    options = {
        "operation": "mixed",
        "query_share": settings.num_queries / count,
        "count": settings.num_points,
        "dim": settings.dim,
        "top_k": settings.top_k,
        "batch_size": settings.batch_size,
    }
    return Asking("qdrant", options, count, notes={"collection": "it has a name of its own, and is removed at the end"})


def _vllm_client(settings: nouns.VllmSmoke, model: str | None) -> Asking:
    named = settings.model or model
    users = settings.concurrent_requests if isinstance(settings, nouns.VllmStress) else 1
    return Asking(
        "openai-completions",
        {"model": named} if named else {},
        settings.num_requests,
        prompts={"texts": [settings.prompt], "output_tokens": settings.max_tokens},
        users=users,
    )


def _ollama_client(settings: nouns.OllamaSmoke, model: str | None) -> Asking:
    texts = [settings.prompt]
    if isinstance(settings, nouns.OllamaStress) and "prompt" not in settings.model_fields_set:
        texts = list(_QUESTIONS)
    return Asking(
        "ollama",
        {"api": "generate"} | ({"model": named} if (named := settings.model or model) else {}),
        settings.num_requests,
        prompts={"texts": texts, "output_tokens": settings.max_tokens},
    )


def _redis_stress(settings: nouns.RedisStress, _: str | None) -> Asking:
    keys = min(settings.num_requests, _MOST_KEYS)
    options = {
        "operation": "mixed",
        "get_share": 0.5,
        "key_count": keys,
        "key_size": settings.key_size_bytes,
        "value_size": settings.value_size_bytes,
    }
    fewer = {"num_requests": f"its requests use {keys} different keys"} if keys < settings.num_requests else {}
    return Asking("redis", options, 2 * settings.num_requests, notes=fewer)


def _minio_stress(settings: nouns.MinioStress, _: str | None) -> Asking:
    options = {
        "operation": "mixed",
        "get_share": 0.5,
        "objects": settings.num_objects,
        "object_size": settings.object_size_bytes,
        "bucket": settings.bucket,
    }
    return Asking("s3", options, 2 * settings.num_objects)


# By type: which service it loads, and how its settings are read.
CLIENTS: dict[str, tuple[str, Callable[[Any, str | None], Asking]]] = {
    "postgres_smoke": ("postgres", _postgres_smoke),
    "postgres_stress": ("postgres", _postgres_stress),
    "pgbench": ("postgres", _pgbench),
    "chroma_healthcheck": ("chroma", _chroma_healthcheck),
    "nginx_healthcheck": ("nginx", _nginx_healthcheck),
    "chroma_stress": ("chroma", _chroma_stress),
    "qdrant_stress": ("qdrant", _qdrant_stress),
    "vllm_smoke": ("vllm", _vllm_client),
    "vllm_stress": ("vllm", _vllm_client),
    "ollama_smoke": ("ollama", _ollama_client),
    "ollama_stress": ("ollama", _ollama_client),
    "redis_stress": ("redis", _redis_stress),
    "minio_stress": ("minio", _minio_stress),
}


PLACE = ("service", "settings")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_PORTS = {
    "postgres": 5432, "chroma": 8000, "vllm": 8000, "ollama": 11434, "nginx": 80, "redis": 6379, "minio": 9000,
    "qdrant": 6333,
}  # fmt: skip
_SCHEMES = {"postgres": "postgresql", "redis": "redis"}
# What answers with success when a server of this type serves; the others are ready when they take connections.
_READY = {"chroma": "/api/v2/heartbeat", "vllm": "/v1/models", "ollama": "/api/tags", "qdrant": "/readyz"}
_ITS_OWN = "is chosen by Prony: a free port, on this machine only"
_ITS_FOLDER = "is chosen by Prony: an empty folder, removed at the end"
_NOTES = {
    "port": _ITS_OWN,
    "host": _ITS_OWN,
    "data_dir": _ITS_FOLDER,
    "console_port": "is not used: its web pages are off",
    "db_name": "the service's own database is used",
    "auth": "is not used: a password is made for each run",
    "warmup_seconds": "is ignored: the load begins when the model is loaded",
}


def set_service(section: nouns.Service, loads: str | None, draft: Draft) -> None:
    """Set the workload's service. `loads` is the type that the client loads, which a command does not tell."""
    variables = _variables(section)
    if section.command is not None:
        _set_command(section, section.type or loads, variables, draft)
        return
    if section.type is None:
        hint = f"type: one of {', '.join(nouns.SERVICES)}; or command: COMMAND"
        draft.refuse(("service",), "has neither a type nor a command", hint)
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
        draft.refuse(("service", "port"), "is missing: Prony must know where the command's server listens")
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


def _vllm_service(settings: nouns.VllmSettings) -> dict[str, Any]:
    count = settings.tensor_parallel_size
    parallel = {"arguments": ["--tensor-parallel-size", count]} if count > 1 else {}
    return {"model": settings.model, **parallel}


def _ollama_service(settings: nouns.OllamaSettings) -> dict[str, Any]:
    return {"model": settings.model}


def _redis(settings: nouns.RedisSettings) -> dict[str, Any]:
    config: dict[str, Any] = {"appendonly": True} if settings.appendonly else {}
    config |= {"maxmemory": settings.maxmemory} if settings.maxmemory else {}
    if "maxmemory_policy" in settings.model_fields_set:
        config["maxmemory-policy"] = settings.maxmemory_policy
    return {"config": config} if config else {}


_SETTINGS: dict[str, Any] = {"postgres": _postgres, "vllm": _vllm_service, "ollama": _ollama_service, "redis": _redis}
