"""The recipes that AI Factory ships, as its folders have them: 16 examples, 12 of sweeps and 34 of measurements.

Each is written here by its keys and values alone. Sections, key names, types, numbers of clients and forms (quoted and
bare times, `client_delay`, raw commands, settings in capital letters) are those of its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

ACCOUNT = "p000000"
_QUOTED_TIME = re.compile(r"'(\d\d:\d\d:\d\d)'")
_MODELS = {"small": "llama3.2:1b", "medium": "llama3.2:3b", "large": "llama3.1:8b"}
Document = dict[str, Any]


def recipes() -> dict[str, str]:
    """Return the text of each by its path."""
    return dict([*_examples(), *_sweeps(), *_measurements()])


def sweep(kind: str) -> dict[int, str]:
    """Return the three recipes of one sweep by their numbers of clients."""
    found = {path: text for path, text in _sweeps() if path.startswith(f"examples/sweeps/recipe_{kind}_")}
    return {int(re.findall(r"_(\d+)client", path)[0]): text for path, text in found.items()}


def _text(service: Document, client: Document, clients: int, *, bare_times: bool = False, **benchmarks: Any) -> str:
    document = {
        "configuration": {"target": "meluxina"},
        "service": service,
        "client": client,
        "benchmarks": {"num_clients": clients} | benchmarks,
    }
    text = yaml.safe_dump(document, sort_keys=False)
    return _QUOTED_TIME.sub(r"\1", text) if bare_times else text


def _service(kind: str, name: str, time_limit: str, settings: Document | None = None, **more: Any) -> Document:
    made = {"type": kind, "name": name, "partition": "cpu", "num_gpus": 0, "time_limit": time_limit}
    return made | ({"settings": settings} if settings is not None else {}) | more


def _client(kind: str, time_limit: str, settings: Document | None = None, **more: Any) -> Document:
    made = {"type": kind, "partition": "cpu", "num_gpus": 0, "time_limit": time_limit}
    return made | ({"settings": settings} if settings is not None else {}) | more


def _examples() -> Iterator[tuple[str, str]]:
    for name, text in {**_databases(), **_vectors(), **_models(), **_commands()}.items():
        yield f"examples/recipe_{name}.yaml", text


def _databases() -> dict[str, str]:
    database = {"db_name": "benchmark", "auth": "trust", "data_dir": "/tmp/pgdata"}
    tuning = {"shared_buffers": "256MB", "effective_cache_size": "1GB", "maintenance_work_mem": "64MB"}
    query = {"query": "SELECT version();", "warmup_delay": 5}
    stress = {"num_inserts": 10000, "num_selects": 5000, "table_name": "stress_test", "warmup_delay": 5}
    keys = {"key_size_bytes": 32, "value_size_bytes": 256}
    large = {"port": 6379, "maxmemory": "4gb", "maxmemory_policy": "allkeys-lru"}
    storage = {"data_dir": "/data", "console_port": 9001}
    secrets = {"MINIO_ROOT_USER": "minioadmin", "MINIO_ROOT_PASSWORD": "minioadmin"}
    slurm = {"nodes": 1, "account": ACCOUNT}
    return {
        "postgres": _text(
            _service("postgres", "postgres-db", "02:00:00", database),
            _client("postgres_smoke", "00:30:00", query), 1, metrics=["query_latency", "connection_time"],
        ),
        "postgres_stress": _text(
            _service("postgres", "postgres-stress", "04:00:00", database | {"tuning": tuning}),
            _client("postgres_stress", "01:00:00", stress), 4, metrics=["insert_tps", "select_qps", "total_rows"],
        ),
        "redis": _text(
            _service("redis", "redis-cache", "00:30:00", {"port": 6379}, **slurm),
            _client("redis_stress", "00:25:00", {"num_requests": 1000, "warmup_delay": 5} | keys,
                    name="redis-benchmark", nodes=1),
            1, client_delay=5,
        ),
        "redis_stress": _text(
            _service("redis", "redis-stress", "01:00:00", large, **slurm),
            _client("redis_stress", "00:50:00", {"num_requests": 10_000_000, "warmup_delay": 10} | keys,
                    name="redis-stress-client", nodes=1),
            4, client_delay=5,
        ),
        "minio": _text(
            _service("minio", "minio-storage", "00:30:00", storage, nodes=1, environment=secrets),
            _client("minio_stress", "00:25:00", _objects(50, 2**20, 10), name="minio-benchmark", nodes=1),
            1, client_delay=5,
        ),
        "minio_stress": _text(
            _service("minio", "minio-stress", "01:00:00", storage, nodes=1, environment=secrets),
            _client("minio_stress", "00:50:00", _objects(100, 10 * 2**20, 15), name="minio-stress-client", nodes=1),
            4, client_delay=10,
        ),
    }  # fmt: skip


def _objects(count: int, size: int, delay: int) -> Document:
    return {"num_objects": count, "object_size_bytes": size, "bucket": "benchmark", "warmup_delay": delay}


def _vectors() -> dict[str, str]:
    place = {"host": "0.0.0.0", "port": 8000}
    small = {"num_vectors": 100, "dim": 64, "num_queries": 50, "top_k": 5, "warmup_delay": 5}
    points = {"collection": "benchmark", "dim": 128, "top_k": 10}
    few = points | {"num_points": 1000, "batch_size": 100, "num_queries": 100, "warmup_delay": 10}
    many = points | {"num_points": 10000, "batch_size": 256, "num_queries": 1000, "warmup_delay": 15}
    return {
        "chroma": _text(
            _service("chroma", "chroma-vectordb", "03:00:00", place), _client("chroma_healthcheck", "00:30:00"), 2,
            metrics=["response_time"],
        ),
        "chroma_stress": _text(
            _service("chroma", "chroma-stress", "04:00:00", place), _client("chroma_stress", "02:00:00", small), 4,
            metrics=["insert_vps", "query_qps"],
        ),
        "qdrant": _text(
            _service("qdrant", "qdrant-vectordb", "00:30:00", {"port": 6333}, nodes=1),
            _client("qdrant_stress", "00:25:00", few, name="qdrant-benchmark", nodes=1), 1, client_delay=5,
        ),
        "qdrant_stress": _text(
            _service("qdrant", "qdrant-stress", "01:00:00", {"port": 6333}, nodes=1),
            _client("qdrant_stress", "00:50:00", many, name="qdrant-stress-client", nodes=1), 4, client_delay=10,
        ),
    }  # fmt: skip


def _models() -> dict[str, str]:
    gpu = {"partition": "gpu", "num_gpus": 1}
    opt = {"model": "facebook/opt-125m", "tensor_parallel_size": 1}
    larger = opt | {"model": "facebook/opt-350m"}
    hello = {"model": opt["model"], "prompt": "Hello, how are you?", "max_tokens": 50, "warmup_delay": 30}
    many = {"model": opt["model"], "num_requests": 50, "max_tokens": 64, "warmup_delay": 30}
    longer = {"model": larger["model"], "prompt": "Explain gravity.", "max_tokens": 100, "warmup_delay": 45}
    gemma = {"model": "gemma2:2b", "num_requests": 3, "max_retries": 30}
    return {
        "vllm": _text(
            _service("vllm", "vllm-llama", "04:00:00", opt, **gpu), _client("vllm_smoke", "00:30:00", hello), 1,
            metrics=["latency"],
        ),
        "vllm_opt350": _text(
            _service("vllm", "vllm-opt350", "02:00:00", larger, **gpu, account=ACCOUNT, memory="64G"),
            _client("vllm_smoke", "00:30:00", longer), 1, metrics=["latency", "throughput"],
        ),
        "vllm_stress": _text(
            _service("vllm", "vllm-stress", "04:00:00", opt, **gpu), _client("vllm_stress", "01:00:00", many), 4,
            metrics=["avg_latency", "p50_latency", "p95_latency", "throughput"],
        ),
        "ollama_gemma": _text(
            _service("ollama", "ollama-gemma", "01:00:00", {"model": "gemma2:2b", "warmup_seconds": 10}, **gpu,
                     account=ACCOUNT),
            _client("ollama_smoke", "00:15:00", gemma), 1, metrics=["latency", "throughput"],
        ),
    }  # fmt: skip


def _commands() -> dict[str, str]:
    """Return those whose service and client are raw commands."""
    slurm = {"partition": "cpu", "num_gpus": 0, "account": ACCOUNT}
    serving = "/bin/sh -c 'ollama serve > /tmp/ollama.log 2>&1 & sleep 15 && ollama pull llama2 && tail -f /dev/null'"
    nginx = {"name": "test-service", "image": "nginx:latest", "command": "nginx -g 'daemon off;'", "port": 80}
    ollama = {"name": "ollama-service", "image": "ollama/ollama:latest", "command": serving, "port": 11434}
    limit = {"time_limit": "00:15:00", "partition": "cpu", "num_gpus": 0}
    looking = "echo Testing $SERVICE_URL\ncurl -s $SERVICE_URL | head -5\necho Benchmark complete\n"
    asking = 'for i in {1..5}; do curl -X POST $SERVICE_URL/api/generate -d \'{"model": "llama2"}\'; done\n'
    metrics = ["latency", "throughput", "tokens_per_second"]
    return {
        "test": _text(nginx | slurm | {"time_limit": "00:30:00"}, {"command": looking} | limit, 2, metrics=metrics[:2]),
        "ollama": _text(ollama | slurm | {"time_limit": "02:00:00"}, {"command": asking} | limit, 3, metrics=metrics),
    }


def _sweeps() -> Iterator[tuple[str, str]]:
    tuning = {"tuning": {"shared_buffers": "256MB", "effective_cache_size": "1GB"}}
    database = {"db_name": "benchmark", "auth": "trust", "data_dir": "/tmp/pgdata"} | tuning
    rows = {"num_inserts": 1000, "num_selects": 500, "table_name": "stress_test", "warmup_delay": 5}
    vectors = {"num_vectors": 100, "dim": 64, "num_queries": 50, "top_k": 5, "warmup_delay": 5}
    keys = {"num_requests": 500, "key_size_bytes": 32, "value_size_bytes": 256, "warmup_delay": 5}
    asked = {"model": "llama2", "num_requests": 20, "max_tokens": 50, "warmup_delay": 30}
    gpu = {"partition": "gpu", "num_gpus": 1, "account": ACCOUNT}
    place = {"host": "0.0.0.0", "port": 8000}
    for count in (1, 2, 8):
        service = _service("chroma", f"chroma-sweep-{count}", "02:00:00", place)
        text = _text(service, _client("chroma_stress", "01:00:00", vectors), count, metrics=["insert_vps", "query_qps"])
        yield f"examples/sweeps/recipe_chroma_{count}client.yaml", text
        service = _service("postgres", f"postgres-sweep-{count}", "02:00:00", database)
        text = _text(service, _client("postgres_stress", "01:00:00", rows), count, metrics=["insert_tps", "select_qps"])
        yield f"examples/sweeps/recipe_postgres_{count}client.yaml", text
    for count in (1, 2, 4):
        service = _service("redis", f"redis-sweep-{count}", "00:30:00", {"port": 6379}, nodes=1, account=ACCOUNT)
        client = _client("redis_stress", "00:25:00", keys, name="redis-benchmark", nodes=1)
        yield f"examples/sweeps/recipe_redis_{count}client.yaml", _text(service, client, count, client_delay=5)
        served = {"model": "llama2", "warmup_seconds": 30}
        service = _service("ollama", f"ollama-sweep-{count}", "02:00:00", served, **gpu)
        text = _text(service, _client("ollama_stress", "01:00:00", asked), count, metrics=["latency", "throughput"])
        yield f"examples/sweeps/recipe_ollama_{count}client.yaml", text


def _measurements() -> Iterator[tuple[str, str]]:
    for count in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        text = _measured(f"redis-scale-{count}c", ("redis", "redis:alpine", 6379), count)
        yield f"measurements/01_redis_scaling/redis-scale-{count}c.yaml", text
    for size, model in _MODELS.items():
        for count in (1, 4, 8, 16, 32):
            served = {"model": model, "warmup_seconds": 15}
            name, asked = f"ollama-{size}-{count}c", {"model": model, "num_requests": 20}
            text = _measured(name, ("ollama", "ollama/ollama:latest", 11434), count, served, asked)
            yield f"measurements/02_ollama_sizing/{name}.yaml", text
    opt = {"model": "facebook/opt-125m"}
    for count in (1, 4, 16, 64, 128):
        served, asked = opt | {"tensor_parallel_size": 1}, opt | {"prompt": "Hello AI", "max_tokens": 50}
        name, kind = f"vllm-opt125m-{count}c", ("vllm", "vllm/vllm-openai:latest", 8000)
        text = _measured(name, kind, count, served, asked)
        yield f"measurements/03_vllm_scaling/vllm-opt125m-{count}c.yaml", text
    for count in (1, 10, 50, 100, 200):
        served, asked = {"POSTGRES_PASSWORD": "benchmarkpass"}, {"transactions": 20_000, "threads": 4}
        name, kind = f"postgres-pgbench-{count}c", ("postgres", "postgres:15-alpine", 5432)
        text = _measured(name, kind, count, served, asked)
        yield f"measurements/04_postgres_scaling/postgres-pgbench-{count}c.yaml", text


def _measured(
    name: str,
    server: tuple[str, str, int],
    clients: int,
    served: Document | None = None,
    asked: Document | None = None,
) -> str:
    kind, image, port = server
    sends = {"redis": "redis_stress", "ollama": "ollama_smoke", "vllm": "vllm_smoke", "postgres": "pgbench"}[kind]
    service = {"type": kind, "name": name, "image": image, "partition": "gpu", "time_limit": "00:20:00"}
    service |= {"account": ACCOUNT, "port": port} | ({"settings": served} if served else {})
    service |= {"memory": "64G"} if kind == "vllm" else {}
    client = {"type": sends, "partition": "cpu", "time_limit": "00:10:00", "account": ACCOUNT}
    client |= {"settings": asked} if asked else {}
    return _text(service, client, clients, bare_times=True, metrics=["latency", "throughput"])
