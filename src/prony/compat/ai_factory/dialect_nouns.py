"""An AI Factory recipe's own words: its four sections, and the settings of each type of service and of client.

Keys that its recipes use and its program passed over are here too. Defaults are its own; a key that is not written is
told from one that is by `model_fields_set`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from prony.model.base import Noun
from prony.model.workload import Scalar

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=1, le=65_535)]
Text = Annotated[str, Field(min_length=1)]
_TIME = re.compile(r"(?:(\d{1,3})-)?(\d{1,3}):(\d{2}):(\d{2})")

SERVICES = ("postgres", "chroma", "vllm", "ollama", "nginx", "redis", "minio", "qdrant")
ServiceType = Literal["postgres", "chroma", "vllm", "ollama", "nginx", "redis", "minio", "qdrant"]
ClientType = Literal[
    "postgres_smoke", "postgres_stress", "pgbench", "chroma_healthcheck", "nginx_healthcheck", "chroma_stress",
    "vllm_smoke", "vllm_stress", "ollama_smoke", "ollama_stress", "redis_stress", "minio_stress", "qdrant_stress",
]  # fmt: skip


def _time_s(value: Any) -> int:
    """Return the seconds of HH:MM:SS; whoever reads YAML 1.1 sees a number where it has no quotes."""
    match = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"must be a time as HH:MM:SS, such as '01:00:00', not {value!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not total:
        raise ValueError("must be longer than 0 s")
    return total


TimeLimit = Annotated[int, BeforeValidator(_time_s, json_schema_input_type=str)]


class Configuration(Noun):
    target: str = Field(default="", description="the cluster where it runs")


class Service(Noun):
    type: ServiceType | None = Field(default=None, description="the service to start")
    name: Text | None = Field(default=None, description="its name")
    image: Text | None = Field(default=None, description="the container image")
    command: Text | None = Field(default=None, description="a command that starts it; wins over the type")
    settings: dict[str, Any] | None = Field(default=None, description="settings of this type")
    port: Port | None = Field(default=None, description="port where it listens")
    env: dict[str, Scalar] | None = Field(default=None, description="environment variables")
    environment: dict[str, Scalar] | None = Field(default=None, description="environment variables, as in env")
    pre_run_commands: list[str] | None = Field(default=None, description="shell lines that are run before it")
    time_limit: TimeLimit = Field(default=3600, description="HH:MM:SS")
    volumes: list[str] | None = Field(default=None, description="folders to mount into the container")
    modules: list[str] | None = Field(default=None, description="modules of the cluster to load")
    partition: str = Field(default="gpu", description="Slurm's partition")
    account: str | None = Field(default=None, description="Slurm's account")
    num_gpus: int = Field(default=1, ge=0, description="GPUs to request from Slurm")
    gpus_per_node: int | None = Field(default=None, ge=0, description="GPUs on each node")
    cpus_per_task: Count | None = Field(default=None, description="CPUs of each task")
    memory: str | None = Field(default=None, description="memory to request from Slurm")
    constraints: str | None = Field(default=None, description="features that a node must have")
    exclude_nodes: str | None = Field(default=None, description="nodes that Slurm must not use")
    nodes: int = Field(default=1, ge=1, description="number of nodes")


class Client(Noun):
    type: ClientType | None = Field(default=None, description="what loads the service")
    name: Text | None = Field(default=None, description="its name")
    command: Text | None = Field(default=None, description="a shell command that loads it; wins over the type")
    settings: dict[str, Any] | None = Field(default=None, description="settings of this type")
    time_limit: TimeLimit = Field(default=3600, description="HH:MM:SS")
    partition: str = Field(default="cpu", description="Slurm's partition")
    account: str | None = Field(default=None, description="Slurm's account")
    num_gpus: int = Field(default=0, ge=0, description="GPUs to request from Slurm")
    nodes: int = Field(default=1, ge=1, description="number of nodes")


class Benchmarks(Noun):
    num_clients: int = Field(ge=1, le=100_000, description="how many clients load the service at once")
    client_delay: Seconds = Field(default=0, description="seconds between the start of one client and of the next")
    metrics: list[str] = Field(default=[], description="names of metrics, shown to people only")


# Settings of services


class PostgresSettings(Noun):
    db_name: Text = Field(default="benchmark", description="name of the database")
    auth: Text = Field(default="trust", description="method of authentication")
    data_dir: Text = Field(default="/tmp/pgdata", description="folder of its data")
    tuning: dict[str, Scalar] = Field(default={}, description="settings, as in postgresql.conf")


class ChromaSettings(Noun):
    host: Text = Field(default="0.0.0.0", description="address where it listens")
    port: Port = Field(default=8000, description="port where it listens")


class VllmSettings(Noun):
    model: Text = Field(default="facebook/opt-125m", description="a name on Hugging Face, or a folder")
    tensor_parallel_size: Count = Field(default=1, description="GPUs that share the model")


class OllamaSettings(Noun):
    model: Text = Field(default="llama2", description="a model that was pulled")
    warmup_seconds: Seconds = Field(default=5, description="seconds to wait before the model is loaded")


class NginxSettings(Noun):
    pass


class RedisSettings(Noun):
    port: Port = Field(default=6379, description="port where it listens")
    appendonly: bool = Field(default=False, description="keep a log of every write on the disk")
    maxmemory: str = Field(default="", description="a setting, as in redis.conf")
    maxmemory_policy: Text = Field(default="noeviction", description="a setting, as in redis.conf")


class MinioSettings(Noun):
    data_dir: Text = Field(default="/tmp/minio-data", description="folder of its data")
    console_port: Port = Field(default=9001, description="port of its web pages")


class QdrantSettings(Noun):
    port: Port = Field(default=6333, description="port where it listens")


SERVICE_SETTINGS: dict[str, type[Noun]] = {
    "postgres": PostgresSettings, "chroma": ChromaSettings, "vllm": VllmSettings, "ollama": OllamaSettings,
    "nginx": NginxSettings, "redis": RedisSettings, "minio": MinioSettings, "qdrant": QdrantSettings,
}  # fmt: skip


# Settings of clients


class Waiting(Noun):
    """What most clients have: pauses before their first request."""

    warmup_delay: Seconds = Field(default=5, description="seconds before the first request")
    max_retries: int = Field(default=30, ge=0, description="most checks whether it is ready")


class PostgresSmoke(Waiting):
    query: Text = Field(default="SELECT version();", description="the SQL statement to send")
    db_name: Text = Field(default="benchmark", description="name of the database")


class PostgresStress(Waiting):
    num_inserts: Count = Field(default=10_000, description="INSERTs of each client")
    num_selects: Count = Field(default=5_000, description="SELECTs of each client, of four kinds")
    table_name: Text = Field(default="stress_test", description="name of the table")
    db_name: Text = Field(default="benchmark", description="name of the database")


class Pgbench(Waiting):
    transactions: Count = Field(default=10, description="transactions of each client")
    scale: Annotated[int, Field(ge=1, le=20_000)] = Field(default=1, description="scale factor: 100,000 accounts each")
    threads: Count = Field(default=1, description="threads that send")
    duration: Count | None = Field(default=None, description="seconds, instead of a number of transactions")
    builtin: Literal["tpcb-like", "simple-update", "select-only"] = Field(
        default="tpcb-like", description="pgbench's built-in script"
    )
    db_name: Text = Field(default="benchmark", description="name of the database")


class Healthcheck(Waiting):
    pass


class ChromaStress(Waiting):
    num_vectors: Count = Field(default=1_000, description="inserts of each client")
    dim: Count = Field(default=128, description="numbers in a vector")
    num_queries: Count = Field(default=100, description="queries of each client")
    top_k: Count = Field(default=10, description="nearest vectors that a query asks for")


class VllmSmoke(Waiting):
    model: Text | None = Field(default=None, description="the model's name")
    prompt: Text = Field(default="Hello", description="the prompt to send")
    max_tokens: Count = Field(default=50, description="most tokens of an answer")
    num_requests: Count = Field(default=1, description="requests of each client")


class VllmStress(VllmSmoke):
    prompt: Text = Field(default="Hello world", description="the prompt to send")
    num_requests: Count = Field(default=50, description="requests of each client")
    max_tokens: Count = Field(default=64, description="most tokens of an answer")
    concurrent_requests: Count = Field(default=1, description="requests that each client sends at once")


class OllamaSmoke(Waiting):
    model: Text | None = Field(default=None, description="the model's name")
    prompt: Text = Field(default="What is artificial intelligence?", description="the prompt to send")
    num_requests: Count = Field(default=5, description="requests of each client")
    max_tokens: Count = Field(default=128, description="most tokens of an answer")


class OllamaStress(OllamaSmoke):
    num_requests: Count = Field(default=20, description="requests of each client")
    max_tokens: Count = Field(default=50, description="most tokens of an answer")


class RedisStress(Waiting):
    num_requests: Count = Field(default=10_000, description="SETs of each client, and as many GETs")
    key_size_bytes: Annotated[int, Field(ge=12, le=65_536)] = Field(default=32, description="bytes of a key")
    value_size_bytes: Annotated[int, Field(ge=0, le=512 * 1024**2)] = Field(default=256, description="bytes of a value")


class MinioStress(Waiting):
    num_objects: Count = Field(default=100, description="PUTs of each client, and as many GETs")
    object_size_bytes: Annotated[int, Field(ge=0, le=256 * 1024**2)] = Field(
        default=1024**2, description="bytes of an object"
    )
    bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")] = Field(
        default="benchmark", description="lower-case letters, digits, '.' and '-', 3 to 63 of them"
    )


class QdrantStress(Waiting):
    collection: Text = Field(default="benchmark", description="name of the collection")
    dim: Count = Field(default=128, description="numbers in a vector")
    num_points: Count = Field(default=10_000, description="vectors that each client inserts")
    batch_size: Count = Field(default=256, description="vectors in one insert")
    num_queries: Count = Field(default=1_000, description="queries of each client")
    top_k: Count = Field(default=10, description="nearest vectors that a query asks for")


CLIENT_SETTINGS: dict[str, type[Waiting]] = {
    "postgres_smoke": PostgresSmoke, "postgres_stress": PostgresStress, "pgbench": Pgbench,
    "chroma_healthcheck": Healthcheck, "nginx_healthcheck": Healthcheck, "chroma_stress": ChromaStress,
    "vllm_smoke": VllmSmoke, "vllm_stress": VllmStress, "ollama_smoke": OllamaSmoke, "ollama_stress": OllamaStress,
    "redis_stress": RedisStress, "minio_stress": MinioStress, "qdrant_stress": QdrantStress,
}  # fmt: skip
