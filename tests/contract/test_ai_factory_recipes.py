"""AI Factory recipes, every type and key of them: what each becomes, and what is said of what it cannot become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from prony.app.check_jobs import check_names, check_target
from prony.cli.main import main
from prony.compat.ai_factory.dialect_nouns import SERVICES
from prony.compat.ai_factory.dialect_sections import CLIENTS
from prony.errors import InputError, RecipeError
from prony.kinds.service.schema import ServiceWorkload
from prony.model.place import QueueWish
from prony.recipe import LoadedRecipe, load, loads
from servers.ai_factory import recipes, sweep

EXAMPLES = sorted((Path(__file__).parents[2] / "recipes" / "ai-factory").glob("*.yaml"))
FIRST = {kind: name for name, (kind, _) in reversed(CLIENTS.items())}


def written(service: dict[str, Any], client: dict[str, Any] | None, **benchmarks: Any) -> str:
    document = {"configuration": {"target": "local"}, "service": service, "client": client}
    document["benchmarks"] = {"num_clients": 2} | benchmarks
    return yaml.safe_dump({name: value for name, value in document.items() if value is not None}, sort_keys=False)


def read(service: dict[str, Any], client: dict[str, Any] | None, **benchmarks: Any) -> LoadedRecipe:
    return loads(written(service, client, **benchmarks), "yaml", "their.yaml")


def redis(**settings: Any) -> LoadedRecipe:
    return read({"type": "redis"}, {"type": "redis_stress", "settings": settings})


def problems(text: str) -> list[tuple[str, str, str]]:
    with pytest.raises(RecipeError) as caught:
        loads(text, "yaml", "their.yaml")
    return [(str(one["path"]), str(one["message"]), str(one["hint"])) for one in caught.value.problems]


# Good ones


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_one_and_names_plugins_that_there_are(path: Path) -> None:
    loaded = load(path, ["place.on=local"])
    assert loaded.dialect == "ai-factory"
    check_target(loaded)
    check_names(loaded.jobs("x1"))


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_type_becomes_a_driver_with_options_that_it_takes(name: str) -> None:
    loaded = read({"type": CLIENTS[name][0]}, {"type": name})
    (job,) = loaded.jobs("x1")
    check_names([job])
    assert job.work(ServiceWorkload).service == CLIENTS[name][0]
    assert job.load.users.concurrency == 2
    assert job.load.requests is None
    assert job.load.asked_requests == 2 * (job.load.users.requests or 0)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_type_starts_by_its_own_defaults(name: str) -> None:
    check_names(read({"type": name}, {"type": FIRST[name]}).jobs("x1"))


def test_the_requests_of_all_clients_are_one_load_of_as_many_users() -> None:
    (job,) = redis(num_requests=300, key_size_bytes=24, value_size_bytes=99).jobs("x1")
    assert (job.load.users.concurrency, job.load.users.requests, job.load.asked_requests) == (2, 600, 1200)
    assert job.work(ServiceWorkload).options == {
        "operation": "mixed", "get_share": 0.5, "key_count": 300, "key_size": 24, "value_size": 99,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["nginx", "chroma"])
def test_the_only_request_of_a_health_check_counts(kind: str) -> None:
    (job,) = read({"type": kind}, {"type": f"{kind}_healthcheck"}, num_clients=3).jobs("x")
    assert (job.load.asked_requests, job.load.warmup) == (3, "none")


def test_a_smoke_test_sends_as_many_requests_as_it_is_told() -> None:
    client = {"type": "vllm_smoke", "settings": {"num_requests": 100, "max_tokens": 50}}
    (job,) = read({"type": "vllm"}, client).jobs("x1")
    assert job.load.asked_requests == 200
    assert job.work(ServiceWorkload).prompts == {"texts": ["Hello"], "output_tokens": 50}
    assert job.work(ServiceWorkload).options == {"model": "facebook/opt-125m"}


def test_concurrent_requests_of_a_client_are_users_of_their_own() -> None:
    loaded = read({"type": "vllm"}, {"type": "vllm_stress", "settings": {"concurrent_requests": 5}})
    (job,) = loaded.jobs("x1")
    assert job.load.users.concurrency == 10
    assert (job.load.users.requests, job.load.asked_requests) == (10, 100)
    assert loaded.users_of_client == 5


def test_requests_that_cannot_be_shared_evenly_are_shared_by_all_and_that_is_told() -> None:
    loaded = read({"type": "vllm"}, {"type": "vllm_stress", "settings": {"concurrent_requests": 8}})
    (job,) = loaded.jobs("x1")
    assert (job.load.users.concurrency, job.load.users.requests, job.load.requests) == (16, None, 100)
    assert any("cannot be divided evenly by 8 at once" in note for note in loaded.notes)


def test_an_apostrophe_in_a_prompt_is_only_a_letter() -> None:
    (job,) = read({"type": "vllm"}, {"type": "vllm_smoke", "settings": {"prompt": 'what\'s "this"; $(reboot)'}}).jobs(
        "x"
    )
    assert job.work(ServiceWorkload).prompts["texts"] == ['what\'s "this"; $(reboot)']


def test_a_service_lives_from_the_first_client_to_the_last() -> None:
    workload = redis().recipe.workload
    assert isinstance(workload, ServiceWorkload)
    assert workload.restart == "once"


def test_settings_of_a_service_are_its_configuration() -> None:
    settings = {"appendonly": True, "maxmemory": "4gb", "maxmemory_policy": "allkeys-lru"}
    (job,) = read({"type": "redis", "settings": settings}, {"type": "redis_stress"}).jobs("x1")
    expected = {"appendonly": True, "maxmemory": "4gb", "maxmemory-policy": "allkeys-lru"}
    assert job.work(ServiceWorkload).settings == {"config": expected}
    tuning = {"tuning": {"shared_buffers": "256MB"}}
    (job,) = read({"type": "postgres", "settings": tuning}, {"type": "postgres_stress"}).jobs("x1")
    assert job.work(ServiceWorkload).settings == {"config": {"shared_buffers": "256MB"}}


def test_the_variables_of_env_environment_and_capital_settings_all_arrive() -> None:
    service = {"type": "minio", "env": {"A": "1"}, "environment": {"MINIO_ROOT_USER": "me"}, "settings": {"B_C": "x"}}
    (job,) = read(service, {"type": "minio_stress"}).jobs("x1")
    assert job.work(ServiceWorkload).settings == {"environment": {"A": "1", "MINIO_ROOT_USER": "me", "B_C": "x"}}


def test_clients_that_send_for_a_time_come_one_after_the_other() -> None:
    client = {"type": "pgbench", "settings": {"duration": 60}}
    loaded = read({"type": "postgres"}, client, num_clients=4, client_delay=5)
    (job,) = loaded.jobs("x1")
    assert (job.load.users.concurrency, job.load.users.stagger, job.load.duration) == (4, 5 * 10**9, 60 * 10**9)
    assert not any("client_delay" in note for note in loaded.notes)


def test_a_delay_that_would_leave_each_client_alone_is_told_with_the_option_that_honours_it() -> None:
    text = written({"type": "redis"}, {"type": "redis_stress"}, num_clients=4, client_delay=5)
    loaded = loads(text, "yaml", "their.yaml")
    (told,) = [note for note in loaded.notes if "client_delay" in note]
    assert "clients start together" in told
    option = told.partition("--set ")[2].split()[0]
    (job,) = loads(text, "yaml", "their.yaml", [option]).jobs("x1")
    assert (job.load.users.concurrency, job.load.users.stagger) == (4, 5 * 10**9)


@pytest.mark.parametrize(("text", "seconds"), [("00:10:00", 600), ("10:00:00", 36_000), ("1-00:00:01", 86_401)])
def test_a_time_limit_is_the_same_with_and_without_quotes(text: str, seconds: int) -> None:
    document = written({"type": "redis"}, {"type": "redis_stress", "time_limit": text})
    for form in (document, document.replace(f"'{text}'", text)):
        (job,) = loads(form).jobs("x1")
        assert job.load.duration == seconds * 10**9


def test_pgbench_runs_its_transactions_on_its_threads() -> None:
    client = {"type": "pgbench", "settings": {"transactions": 2000, "threads": 4}}
    (job,) = read({"type": "postgres", "image": "postgres:15-alpine"}, client, num_clients=10).jobs("x1")
    assert (job.load.asked_requests, job.load.users.concurrency, job.load.clients.processes) == (20_000, 10, 4)
    assert job.work(ServiceWorkload).options["operation"] == "tpcb"
    (job,) = read({"type": "postgres"}, client, num_clients=2).jobs("x1")
    assert job.load.clients.processes == 2


def test_a_batch_is_never_empty() -> None:
    client = {"type": "qdrant_stress", "settings": {"num_points": 512, "batch_size": 256, "num_queries": 8}}
    (job,) = read({"type": "qdrant"}, client, num_clients=1).jobs("x1")
    assert job.load.asked_requests == 2 + 8
    assert job.work(ServiceWorkload).options["query_share"] == 0.8


def test_a_raw_command_of_a_client_is_run_once_for_each_of_them() -> None:
    client = {"command": "curl $SERVICE_URL", "time_limit": "00:15:00", "type": "nginx_healthcheck"}
    loaded = read({"type": "nginx"}, client, num_clients=3, client_delay=1)
    (job,) = loaded.jobs("x1")
    check_names([job])
    assert (job.work(ServiceWorkload).driver, job.work(ServiceWorkload).options) == (
        "command",
        {"command": "curl $SERVICE_URL"},
    )
    assert (job.load.users.concurrency, job.load.duration) == (3, 900 * 10**9)
    assert any("commands start together" in note for note in loaded.notes)
    assert any("the command beside it wins" in note for note in loaded.notes)


def test_lines_before_a_service_are_run_before_it() -> None:
    (job,) = read(
        {"type": "redis", "pre_run_commands": ["ulimit -n 4096 && echo 'so'"]}, {"type": "redis_stress"}
    ).jobs("x")
    assert job.work(ServiceWorkload).settings == {"before": ["bash -c 'ulimit -n 4096 && echo '\"'\"'so'\"'\"''"]}


def test_a_raw_command_is_the_service_and_the_client_says_what_speaks_to_it() -> None:
    service = {"type": "redis", "command": "redis-server --port 7000", "port": 7000, "env": {"A": "1"}}
    service["pre_run_commands"] = ["export B=2"]
    loaded = read(service, {"type": "redis_stress"})
    (job,) = loaded.jobs("x1")
    check_names([job])
    assert job.work(ServiceWorkload).service == "command"
    assert job.work(ServiceWorkload).settings == {
        "command": ["bash", "-c", "export B=2\nredis-server --port 7000"],
        "endpoint": "redis://127.0.0.1:7000", "ready": "tcp", "environment": {"A": "1"},
    }  # fmt: skip
    assert any("the command beside it wins" in note for note in loaded.notes)


def test_a_sweep_over_clients_has_the_same_requests_for_each_client() -> None:
    client = {"type": "redis_stress", "settings": {"num_requests": 500}}
    loaded = loads(written({"type": "redis"}, client), overrides=["matrix.load.closed.concurrency=[1,2,4,8]"])
    assert [job.load.users.concurrency for job in loaded.jobs("x1")] == [1, 2, 4, 8]
    assert [job.load.asked_requests for job in loaded.jobs("x1")] == [1000, 2000, 4000, 8000]


# All that it ships


SHIPPED = recipes()


def test_its_folders_have_62_recipes() -> None:
    assert len(SHIPPED) == 16 + 12 + 34


@pytest.mark.parametrize("name", SHIPPED)
def test_every_recipe_that_it_ships_is_accepted_for_this_machine(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(SHIPPED[name])
    code = main(["check", str(path), "--on", "local"])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert said.out.endswith(": 1 service job\n")
    assert main(["check", str(path)]) == 2  # its own target is a cluster
    assert "--on local" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["redis", "postgres", "chroma", "ollama"])
def test_the_recipes_of_a_sweep_differ_in_their_clients_alone(kind: str) -> None:
    loaded = {clients: loads(text) for clients, text in sweep(kind).items()}
    loads_of = {clients: one.jobs("x1")[0].load for clients, one in loaded.items()}
    assert {clients: load.users.concurrency for clients, load in loads_of.items()} == {one: one for one in loaded}
    assert len({load.users.requests for load in loads_of.values()}) == 1


def test_settings_that_are_empty_are_no_crash() -> None:
    assert read({"type": "redis", "settings": None}, {"type": "redis_stress", "settings": None}).jobs("x1")


# What is said


def test_what_is_not_honoured_is_said_with_its_line_and_once_for_a_cluster() -> None:
    loaded = load(next(path for path in EXAMPLES if path.stem == "redis"), ["place.on=local"])
    said = [note.removeprefix(str(loaded.path)) for note in loaded.notes]
    first = ":7: service.partition: is passed to the target's queue, if it has one and its options do not set it"
    assert said[0] == f"{first}; so is time_limit (line 9)"
    assert said[1] == ":8: service.nodes: is for clusters: set it in the options of the target"
    assert loaded.recipe.place.queue == QueueWish(partition="cpu", minutes=10)
    assert said[2].startswith(":11: service.settings.port: is chosen by Prony")
    assert said[4].startswith(":23: client.settings.warmup_delay: is ignored")
    assert [int(note.split(":")[1]) for note in said] == sorted(int(note.split(":")[1]) for note in said)


def test_a_target_that_is_none_of_ours_is_refused_with_its_line_and_the_way_out() -> None:
    loaded = loads(written({"type": "redis"}, {"type": "redis_stress"}).replace("local", "meluxina"), name="their.yaml")
    with pytest.raises(InputError, match=r"their\.yaml:2: no target is called 'meluxina'") as caught:
        check_target(loaded)
    assert caught.value.code == "unknown_target"
    assert "--on local" in caught.value.hint


def test_without_a_target_it_runs_here_and_that_is_said() -> None:
    text = written({"type": "redis"}, {"type": "redis_stress"}).replace("configuration:\n  target: local\n", "")
    loaded = loads(text, name="their.yaml")
    check_target(loaded)
    assert loaded.notes == ("their.yaml:1: configuration: names no target: it runs on this machine",)


# Bad ones


def test_every_problem_is_told_at_once_with_its_line() -> None:
    text = (
        "configuration: {target: local}\n"
        "service: {type: rediss}\n"
        "client: {type: redis_stress, setings: {}}\n"
        "benchmarks: {num_client: 2}\n"
    )
    with pytest.raises(RecipeError) as caught:
        loads(text, "yaml", "their.yaml")
    found = {(one["line"], one["path"]): one["hint"] for one in caught.value.problems}
    assert found[(2, "service.type")] == "did you mean redis?"
    assert found[(3, "client.setings")] == "did you mean settings?"
    assert found[(4, "benchmarks.num_client")] == "did you mean num_clients?"
    assert (4, "benchmarks.num_clients") in found


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"num_requests": True}, "num_requests"),
        ({"num_requests": 2.5}, "num_requests"),
        ({"num_requests": 0}, "num_requests"),
        ({"num_requests": "10"}, "num_requests"),
        ({"value_size_bytes": "x"}, "value_size_bytes"),
        ({"value_size_bytes": -5}, "value_size_bytes"),
        ({"warmup_delay": -1}, "warmup_delay"),
        ({"num_request": 5}, "num_request"),
    ],
)
def test_a_setting_that_is_none_is_refused(settings: dict[str, Any], path: str) -> None:
    text = written({"type": "redis"}, {"type": "redis_stress", "settings": settings})
    assert [one[0] for one in problems(text)] == [f"client.settings.{path}"]


@pytest.mark.parametrize(
    ("service", "client", "benchmarks", "said"),
    [
        ({}, {"type": "redis_stress"}, {}, "has neither a type nor a command"),
        ({"type": "redis"}, {}, {}, "has neither a type nor a command"),
        ({"type": "redis"}, None, {}, "is missing"),
        ({"type": "redis"}, {"type": "pgbench"}, {}, "pgbench loads postgres, and the service is redis"),
        ({"type": "redis"}, {"type": "vllm_inference"}, {}, "must be one of"),
        ({"type": "redis"}, {"type": "redis_stress"}, {"num_clients": 0}, "must be a whole number from 1 to 100000"),
        ({"type": "redis", "time_limit": 36_000}, {"type": "redis_stress"}, {}, "must be a time as HH:MM:SS"),
        ({"type": "redis", "num_gpus": -1}, {"type": "redis_stress"}, {}, "must be a whole number, 0 or more"),
        ({"image": "nginx:latest"}, {"type": "nginx_healthcheck"}, {}, "has neither a type nor a command"),
        ("redis", {"type": "redis_stress"}, {}, "must be a map"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(
    service: Any, client: Any, benchmarks: dict[str, Any], said: str
) -> None:
    assert said in " / ".join(one[1] for one in problems(written(service, client, **benchmarks)))


def test_no_clients_is_an_error_and_no_endless_wait() -> None:
    text = written({"type": "redis"}, {"type": "redis_stress"}).replace("  num_clients: 2\n", "  metrics: [x]\n")
    (told,) = problems(text)
    assert told[:2] == ("benchmarks.num_clients", "is missing: how many clients load the service at once")


def test_an_unknown_section_is_told() -> None:
    text = written({"type": "redis"}, {"type": "redis_stress"}) + "monitoring: {}\n"
    (told,) = problems(text)
    assert told[:2] == ("monitoring", "unknown section")


def test_a_recipe_of_our_own_is_never_taken_for_one() -> None:
    text = "name: x\nworkload: {kind: service, service: redis}\nservice: {}\nclient: {}\n"
    assert [one[0] for one in problems(text)] == ["service", "client"]
