"""The gate for paths: it knows every path that a recipe can name, and keeps all of them in the allowed folders."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import numpy as np
import pytest
from pydantic import BaseModel

from prony.errors import InputError, PronyError
from prony.model.job import Job
from prony.model.recipe import Recipe
from prony.model.result import Failure, Result
from prony.ports import plugins
from prony.ports.models import AGENT_POLICY, ModelPolicy
from prony.runner.paths import check_paths, path_kind

# Text that is no path of this disk, by what it is. What is added to the schema is added here, or marked as a path.
NO_PATHS = {
    "names and words that nothing is opened by": "ChromaOptions.database ChromaOptions.tenant Cost.currency "
    "DatasetOptions.expected DatasetOptions.max_tokens DatasetOptions.prompt DatasetOptions.system GrpcOptions.service "
    "ClassifyOptions.label ClassifyOptions.labels ClassifyOptions.text HardwareWorkload.layers HardwareWorkload.unit "
    "LlmWorkload.checksum LlmWorkload.unit "
    "Inputs.axes Inputs.shapes Inputs.values LlamacppOptions.model_name Load.slo ModelWorkload.checksum "
    "ModelWorkload.engine_version ModelWorkload.unit OllamaOptions.keep_alive OllamaOptions.model "
    "OllamaOptions.parameters OpenAiOptions.extra OpenAiOptions.model PostgresOptions.database PostgresOptions.sql "
    "PostgresOptions.user PostgresOptions.values Recipe.description Recipe.labels Recipe.name "
    "Recipe.units Recipe.watch RecipeAlarm.labels RecipeAlarm.owner S3Options.bucket "
    "S3Options.region ScriptMetric.name ScriptMetric.pattern ScriptMetric.unit ScriptSource.checksum ScriptSource.name "
    "ScriptWorkload.directory_name "
    "PerplexityOptions.id PerplexityOptions.text TransformersOptions.model_name TransformersOptions.unit "
    "QaOptions.answers QaOptions.context QaOptions.question SummarizeOptions.article SummarizeOptions.id "
    "SummarizeOptions.prompt SummarizeOptions.summaries SummarizeOptions.system TextsOptions.system "
    "TextsOptions.texts Values.constant VllmOptions.model_name _QuestionOptions.id _QuestionOptions.system",
    "names of plug-ins": "LlmWorkload.engine LlmWorkload.reference_engine LlmWorkload.task ModelWorkload.engine "
    "ServiceWorkload.driver ServiceWorkload.service ServiceWorkload.task",
    "numbers and how they are spread": "ConversationsOptions.output_tokens DatasetOptions.output_tokens "
    "SyntheticOptions.input_tokens SyntheticOptions.input_words SyntheticOptions.output_tokens "
    "SummarizeOptions.output_tokens TextsOptions.output_tokens _QuestionOptions.output_tokens",
    "variables of the environment, by name": "GrpcOptions.api_key_env HttpOptions.api_key_env "
    "OllamaOptions.api_key_env OpenAiOptions.api_key_env PostgresOptions.password_env RedisOptions.password_env "
    "S3Options.access_key_env S3Options.secret_key_env VectorOptions.api_key_env",
    "parts of a request": "GrpcOptions.headers HttpOptions.bodies HttpOptions.body HttpOptions.contains "
    "HttpOptions.headers HttpOptions.json_equals HttpOptions.method HttpOptions.operations HttpOptions.path "
    "OllamaOptions.headers OpenAiOptions.headers",
    "URLs that HTTP alone fetches": "CommandOptions.metrics_url CommandOptions.ready CommandOptions.version "
    "NginxOptions.proxy Readiness.path ServiceWorkload.metrics_url",
    "read by the server, which opens nothing by it": "Clients.on Place.on Place.where QueueWish.account "
    "QueueWish.partition Recipe.gates RecipeAlarm.name "
    "RecipeAlarm.to RecipeAlarm.when Timing.cron Timing.zone",
    "other fields' values, which are checked as those": "Duet.a Duet.b LlmWorkload.prompts Matrix.axes Matrix.exclude "
    "ServiceWorkload.options ServiceWorkload.prompts ServiceWorkload.settings",
    "commands: their kind is allowed as a whole, or not at all": "CommandOptions.before CommandOptions.command "
    "CommandOptions.environment ScriptServer.arguments ScriptServer.command ScriptServer.environment "
    "ScriptWorkload.arguments ScriptWorkload.command ScriptWorkload.environment ServiceOptions.before "
    "ServiceOptions.environment",
    "below the folder that the script runs in, or refused (run.scripts.sources.below)": "ScriptSource.path",
}


def nouns_in(kind: Any) -> Iterator[type[BaseModel]]:
    """Return every noun that a type mentions."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    elif get_origin(kind) is not None or isinstance(kind, types.UnionType):
        for part in get_args(kind):
            yield from nouns_in(part)


def holds_text(kind: Any) -> bool:
    """May a person write any text there?"""
    if get_origin(kind) in (Union, types.UnionType, list, tuple, dict) or hasattr(kind, "__metadata__"):
        return any(holds_text(part) for part in get_args(kind))
    return kind in (str, Any)


def roots() -> Iterator[type[BaseModel]]:
    yield Recipe
    for group in (plugins.SERVICES, plugins.DRIVERS, plugins.TASKS):
        for name in plugins.find_plugins(group):
            yield plugins.load_plugin(group, name).Options


def schema() -> dict[str, Any]:
    """Return every field of the recipe and of the plug-ins' options that holds text, by the noun that declares it."""
    waiting, seen, fields = list(roots()), set(), {}
    while waiting:
        noun = waiting.pop()
        if noun in seen:
            continue
        seen.add(noun)
        for name, field in noun.model_fields.items():
            owner = next(base for base in reversed(noun.__mro__) if name in getattr(base, "model_fields", {}))
            waiting += nouns_in(field.annotation)
            if holds_text(field.annotation):
                fields[f"{owner.__name__}.{name}"] = field
    return fields


def no_paths() -> set[str]:
    return {name for names in NO_PATHS.values() for name in names.split()}


def test_every_text_of_the_schema_is_known_to_the_gate_or_said_to_be_no_path() -> None:
    fields = schema()
    marked = {name for name, field in fields.items() if path_kind(field) is not None}
    assert "Values.file" in marked
    unknown = sorted(set(fields) - marked - no_paths())
    assert unknown == [], "mark them with json_schema_extra={'path': ...}, or say in NO_PATHS what they are"
    assert sorted(no_paths() & marked) == []
    assert sorted(no_paths() - set(fields)) == [], "these are in the schema no more"


MODEL = {"kind": "model", "model": "zoo:tiny", "engine": "null"}
REDIS = {"kind": "service", "service": "redis"}
CHAT = {"kind": "service", "endpoint": "http://127.0.0.1:1", "driver": "openai-chat"}
SCRIPT = {"kind": "script", "command": "true"}


def vllm(**settings: Any) -> dict[str, Any]:
    return {"workload": {"kind": "service", "service": "vllm", "settings": {"model": "a/b", **settings}}}


def command(**settings: Any) -> dict[str, Any]:
    return {"workload": {"kind": "service", "service": "command", "settings": {"command": "true", **settings}}}


def settings_of(service: str, **settings: Any) -> dict[str, Any]:
    return {"workload": {"kind": "service", "service": service, "settings": settings}}


# One job for each field that holds a path; {} is where the path goes.
LLM = {"kind": "llm", "model": "zoo:llm-1m", "engine": "null"}
NAMED: dict[str, dict[str, Any]] = {
    "Values.file": {"workload": MODEL | {"inputs": {"values": {"x": {"file": "{}"}}}}},
    "ModelWorkload.model": {"workload": MODEL | {"model": "{}"}},
    "ModelWorkload.model as file:": {"workload": MODEL | {"model": "file:{}"}},
    "ModelWorkload.options": {"workload": MODEL | {"options": {"CACHE_DIR": "{}"}}},
    "ServiceWorkload.endpoint": {"workload": CHAT | {"endpoint": "unix://{}"}},
    "ServiceWorkload.endpoint, certificates": {"workload": CHAT | {"endpoint": "https://127.0.0.1/?ca={}"}},
    "ServiceWorkload.endpoint, PostgreSQL": {
        "workload": {"kind": "service", "driver": "postgres", "endpoint": "postgresql://a/b?sslrootcert={}"}
    },
    "LlmWorkload.model": {"workload": LLM | {"model": "{}"}},
    "LlmWorkload.reference": {"workload": LLM | {"reference": "{}"}},
    "LlmWorkload.draft": {"workload": LLM | {"draft": "{}"}},
    "LlmWorkload.options": {"workload": LLM | {"options": {"cache": "{}"}}},
    "HardwareWorkload.path": {"workload": {"kind": "hardware", "test": "disk", "path": "{}"}},
    "Replay.file": {"workload": CHAT, "load": {"replay": {"file": "{}"}}},
    "ScriptWorkload.directory": {"workload": SCRIPT | {"directory": "{}"}},
    "ScriptWorkload.image": {"workload": SCRIPT | {"image": "{}"}},
    "ScriptServer.image": {"workload": SCRIPT | {"server": {"ports": [1], "image": "{}"}}},
    "ScriptSource.source": {"workload": SCRIPT | {"sources": [{"source": "{}", "path": "x"}]}},
    "ScriptSource.source as a URL": {"workload": SCRIPT | {"sources": [{"source": "file://{}", "path": "x"}]}},
    "ScriptSource.source of a server": {
        "workload": SCRIPT | {"server": {"ports": [1], "command": "true", "sources": [{"source": "{}", "path": "x"}]}}
    },
    "ServiceOptions.program": settings_of("redis", program="{}"),
    "ServiceOptions.arguments": settings_of("redis", arguments=["--aclfile={}"]),
    "ServiceOptions.container_arguments": settings_of("redis", container_arguments=["--volume={}:/inside"]),
    "ServiceOptions.image": settings_of("redis", image="{}"),
    "RedisOptions.config": settings_of("redis", config={"aclfile": "{}"}),
    "NginxOptions.config": settings_of("nginx", config={"include": "{}"}),
    "PostgresOptions.config": settings_of("postgres", config={"ssl_key_file": "{}"}),
    "QdrantOptions.config": settings_of("qdrant", config={"tls.key": "{}"}),
    "CommandOptions.endpoint": command(endpoint="unix://{}"),
    "LlamacppOptions.model": settings_of("llamacpp", model="{}"),
    "OllamaOptions.models": settings_of("ollama", model="m", models="{}"),
    "VllmOptions.model": vllm(model="{}"),
    "VllmOptions.python": vllm(python="{}"),
    "TextOptions.tokenizer": {"workload": CHAT | {"options": {"tokenizer": "{}"}}},
    "OllamaOptions.tokenizer": {"workload": CHAT | {"driver": "ollama", "options": {"tokenizer": "{}"}}},
    "DatasetOptions.file": {"workload": CHAT | {"task": "dataset", "prompts": {"file": "{}"}}},
    "DatasetOptions.tokenizer": {"workload": CHAT | {"task": "dataset", "prompts": {"file": "in", "tokenizer": "{}"}}},
    "SyntheticOptions.tokenizer": {"workload": CHAT | {"prompts": {"tokenizer": "{}"}}},
    "TextsOptions.tokenizer": {"workload": CHAT | {"task": "texts", "prompts": {"texts": ["a"], "tokenizer": "{}"}}},
    "ConversationsOptions.file": {"workload": CHAT | {"task": "sharegpt", "prompts": {"file": "{}"}}},
    "SummarizeOptions.file": {"workload": CHAT | {"task": "summarize", "prompts": {"file": "{}"}}},
    "SummarizeOptions.tokenizer": {"workload": CHAT | {"task": "summarize", "prompts": {"tokenizer": "{}"}}},
    "ScoringOptions.scorer": {"workload": CHAT | {"task": "summarize", "prompts": {"scorer": "python {}"}}},
    "ScoringOptions.scorer as a function": {
        "workload": CHAT | {"task": "summarize", "prompts": {"scorer": "{}:score"}}
    },
    "PerplexityOptions.file": {
        "workload": CHAT | {"driver": "openai-completions", "task": "perplexity", "prompts": {"file": "{}"}}
    },
    "TransformersOptions.model": settings_of("transformers", model="{}"),
    "_QuestionOptions.file": {"workload": CHAT | {"task": "qa", "prompts": {"file": "{}"}}},
    "ConversationsOptions.tokenizer": {
        "workload": CHAT | {"task": "sharegpt", "prompts": {"file": "in", "tokenizer": "{}"}}
    },
}


def test_every_marked_field_is_tried() -> None:
    marked = {name for name, field in schema().items() if path_kind(field) is not None}
    assert sorted(marked - {re.split("[ ,]", name)[0] for name in NAMED}) == []


def job_with(shape: dict[str, Any], path: str) -> Job:
    """Return a job whose {} is the path."""

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fill(inside) for name, inside in value.items()}
        if isinstance(value, list):
            return [fill(inside) for inside in value]
        return value.replace("{}", path) if isinstance(value, str) else value

    return Job.read({"id": "x-001", "experiment_id": "x", "name": "t", **fill(shape)})


def refusal(job: Job, policy: ModelPolicy, base: Path) -> PronyError:
    with pytest.raises(InputError) as caught:
        check_paths(job, policy, base)
    return caught.value


@pytest.mark.parametrize("field", NAMED)
def test_a_path_elsewhere_is_refused_and_nobody_learns_whether_it_is_there(field: str, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    closed = tmp_path / "closed"
    for folder in (allowed, closed):
        folder.mkdir()
        (folder / "here").write_text("x")
    (allowed / "link").symlink_to(closed / "here")
    policy = ModelPolicy(folders=(allowed,))
    for name in ("here", "gone", "gone/deeper", "../closed/here", "~nobody-of-that-name/x"):
        path = name if name.startswith("~") else str(closed / name)
        if path.startswith("~") and re.search("unix|file:", str(NAMED[field])):
            continue  # there it is no name of a user
        error = refusal(job_with(NAMED[field], path), policy, allowed)
        assert error.code == "path_refused"
        assert error.message.replace(path, "P").endswith("it is outside the allowed folders")
    there = refusal(job_with(NAMED[field], str(closed / "here")), policy, allowed).message
    gone = refusal(job_with(NAMED[field], str(closed / "gone")), policy, allowed).message
    assert there.replace("/here", "") == gone.replace("/gone", "")
    refusal(job_with(NAMED[field], str(allowed / "link")), policy, allowed)
    check_paths(job_with(NAMED[field], str(allowed / "here")), policy, allowed)
    check_paths(job_with(NAMED[field], str(closed / "here")), ModelPolicy(), allowed)


@pytest.mark.parametrize(
    "shape",
    [
        {"workload": MODEL | {"model": "https://example.org/m.onnx"}},
        {"workload": MODEL | {"options": {"intra_op.allow_spinning": "0", "path": "a/b"}}},
        {"workload": SCRIPT | {"directory": "sha256:" + "0" * 64}},
        {"workload": SCRIPT | {"sources": [{"source": "https://example.org/x", "path": "/data/x"}]}},
        {"workload": REDIS | {"settings": {"program": "valkey-server", "config": {"save": "60 1"}}}},
        {"workload": CHAT | {"endpoint": "https://127.0.0.1/v1?verify=no"}},
        settings_of("nginx", config={"gzip_types": "text/plain application/json"}),
        vllm(model="facebook/opt-125m"),
        command(endpoint="unix://{folder}/socket"),
    ],
    ids=str,
)
def test_what_is_no_path_passes_where_no_folder_is_allowed(shape: dict[str, Any], tmp_path: Path) -> None:
    check_paths(job_with(shape, ""), AGENT_POLICY, tmp_path)


def executed(job: Job, place: Path, folders: tuple[Path, ...]) -> Failure | None:
    """Run a job as an agent's runner does; return how it failed."""
    place.mkdir()
    (place / "job.json").write_text(job.model_dump_json())
    arguments = [str(place / "job.json"), "--out", str(place / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "prony", "exec", *arguments],
        env=os.environ | ModelPolicy(folders=folders).variables(), capture_output=True, check=False, cwd=place,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr.decode()
    return Result.read_json((place / "out" / "result.json").read_bytes()).failure


def test_a_runner_reads_the_contents_of_an_input_from_allowed_folders_only(tmp_path: Path, prony_home: Path) -> None:
    open_, closed = tmp_path / "open", tmp_path / "closed"
    for folder in (open_, closed):
        folder.mkdir()
        np.save(folder / "x.npy", np.ones((1, 4), dtype=np.float32))
    measure = {"runs": 1, "warmup": 0, "repeats": 1, "check": False}

    def fails(number: int, path: Path) -> Failure | None:
        shape = {"workload": MODEL | {"inputs": {"values": {"x": {"file": str(path)}}}}, "measure": measure}
        return executed(job_with(shape, ""), tmp_path / str(number), (open_,))

    there, gone = fails(1, closed / "x.npy"), fails(2, closed / "y.npy")
    assert there is not None
    assert gone is not None
    assert (there.code, gone.code) == ("path_refused", "path_refused")
    assert there.message.replace("x.npy", "") == gone.message.replace("y.npy", "")
    read = fails(3, open_ / "x.npy")
    assert read is None or read.code != "path_refused"
