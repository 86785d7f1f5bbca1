"""Translate the settings of an AI Factory client for Prony's own driver.

Its clients start a process for each request; a driver here keeps a connection for each user. What a client does in
phases (all inserts, then all queries) is one load here, with the same shares in an even mix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prony.compat.ai_factory import dialect_nouns as nouns

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
    return Asking("postgres", options, 1, notes={"db_name": "the query is asked of the service's own database"})


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


def _vllm(settings: nouns.VllmSmoke, model: str | None) -> Asking:
    named = settings.model or model
    users = settings.concurrent_requests if isinstance(settings, nouns.VllmStress) else 1
    return Asking(
        "openai-completions",
        {"model": named} if named else {},
        settings.num_requests,
        prompts={"texts": [settings.prompt], "output_tokens": settings.max_tokens},
        users=users,
    )


def _ollama(settings: nouns.OllamaSmoke, model: str | None) -> Asking:
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
    fewer = {"num_requests": f"its requests are spread over {keys} keys"} if keys < settings.num_requests else {}
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
    "vllm_smoke": ("vllm", _vllm),
    "vllm_stress": ("vllm", _vllm),
    "ollama_smoke": ("ollama", _ollama),
    "ollama_stress": ("ollama", _ollama),
    "redis_stress": ("redis", _redis_stress),
    "minio_stress": ("minio", _minio_stress),
}
