"""Benchmark AI descriptors, key by key: what each good value becomes, and what is said of each bad one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.errors import RecipeError
from prony.kinds.script.schema import Readiness, ScriptServer, ScriptWorkload
from prony.model.recipe import Recipe
from prony.recipe import LoadedRecipe, dump, loads

FINAL: dict[str, Any] = {
    "spec_version": "0.1.0",
    "info": {"description": "a hello world", "labels": {"task_name": "hello_world"}},
    "hardware": {"instance_type": "local", "strategy": "single_node"},
    "env": {"docker_image": "python:3"},
    "ml": {"benchmark_code": "python3 hello.py"},
    "output": {"metrics": [{"name": "elapsed", "units": "ms", "pattern": r"elapsed: ([0-9.]+)"}]},
}
OF_2019: dict[str, Any] = {
    "spec_version": "0.1.0",
    "info": {"task_name": "Hello world", "description": "a hello world"},
    "hardware": {"instance_type": "t3.small", "strategy": "single_node"},
    "env": {"docker_image": "python:3"},
    "ml": {"benchmark_code": "python3 hello.py"},
    "data": {"id": "mnist", "sources": [{"uri": "s3://bucket/mnist", "path": "/data/mnist"}]},
    "output": {"metrics": ["epoch", "train_loss", "loss", "accuracy"]},
}
SERVER: dict[str, Any] = {
    "hardware": {"instance_type": "local"},
    "env": {"docker_image": "python:3", "ports": [8080, 8081], "start_command": "python3 serve.py"},
}
INFERENCE = FINAL | {"hardware": {"instance_type": "local", "strategy": "inference"}, "server": SERVER}
HOROVOD = FINAL | {"hardware": {"instance_type": "p3.8xlarge", "strategy": "horovod"}}
SOURCE = {"src": "https://example.org/mnist.npz", "path": "/data/mnist.npz"}


def toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def text_of(document: Mapping[str, Any]) -> str:
    """Write every section on a line of its own."""
    return "".join(f"{key} = {toml(value)}\n" for key, value in document.items())


def changed(document: Any, path: str, value: Any) -> dict[str, Any]:
    """Return the document with one value set; None takes the key away."""
    key, _, rest = path.partition(".")
    inner = changed(document.get(key, {}), rest, value) if rest else value
    return {name: one for name, one in (dict(document) | {key: inner}).items() if one is not None}


def read(document: Mapping[str, Any]) -> LoadedRecipe:
    return loads(text_of(document), "toml", "descriptor.toml")


def script(loaded: LoadedRecipe) -> ScriptWorkload:
    assert isinstance(loaded.recipe.workload, ScriptWorkload)
    return loaded.recipe.workload


def server(loaded: LoadedRecipe) -> ScriptServer:
    found = script(loaded).server
    assert found is not None
    return found


def readiness(loaded: LoadedRecipe) -> Readiness:
    found = server(loaded).readiness
    assert found is not None
    return found


def note(loaded: LoadedRecipe, path: str) -> str:
    return next((one for one in loaded.notes if f": {path}: " in one), "")


Check = Callable[[LoadedRecipe], Any]
GOOD: list[tuple[dict[str, Any], str, Any, Check]] = [
    (FINAL, "spec_version", "0.1.0", lambda it: not note(it, "spec_version")),
    (FINAL, "spec_version", "banana", lambda it: "read as 0.1.0" in note(it, "spec_version")),
    (FINAL, "info.description", " two\n words ", lambda it: it.recipe.description == "two words"),
    (FINAL, "info.task_name", "Hello, world!", lambda it: it.recipe.labels["task_name"] == "hello_world"),
    (FINAL, "info.labels", {}, lambda it: it.recipe.name == "descriptor"),
    (FINAL, "info.labels", {"task_name": "a.b-c_D"}, lambda it: it.recipe.name == "a.b-c_D"),
    (FINAL, "info.labels", {"Case": "Kept", "empty": ""}, lambda it: it.recipe.labels == {"Case": "Kept", "empty": ""}),
    (FINAL, "info.labels", {"x" * 63: "y" * 63}, lambda it: it.recipe.labels == {"x" * 63: "y" * 63}),
    (FINAL, "info.execution_engine", "default", lambda it: not note(it, "info.execution_engine")),
    (FINAL, "info.scheduling", "single_run", lambda it: it.recipe.schedule is None),
    (FINAL, "hardware.instance_type", "local", lambda it: not note(it, "hardware.instance_type")),
    (FINAL, "hardware.instance_type", "h100", lambda it: "h100" in note(it, "hardware.instance_type")),
    (FINAL, "hardware.strategy", None, lambda it: script(it).launch.processes == 1),
    (FINAL, "hardware.aws_zone_id", "use1-az5", lambda it: note(it, "hardware.aws_zone_id")),
    (FINAL, "hardware.availability_zone", "us-east-1a", lambda it: note(it, "hardware.availability_zone")),
    (FINAL, "hardware.distributed", {}, lambda it: "is ignored" in note(it, "hardware.distributed")),
    (HOROVOD, "hardware.distributed", None, lambda it: script(it).launch.nodes == 2),
    (HOROVOD, "hardware.distributed.num_instances", 3, lambda it: script(it).launch.nodes == 3),
    (HOROVOD, "hardware.distributed.num_instances", 3, lambda it: script(it).launch.kind == "mpirun"),
    (HOROVOD, "hardware.distributed.num_instances", 3, lambda it: note(it, "hardware.distributed.num_instances")),
    (HOROVOD, "hardware.distributed.processes_per_instance", "4", lambda it: script(it).launch.processes == 4),
    (HOROVOD, "hardware.distributed.processes_per_instance", "gpus", lambda it: script(it).launch.processes == 4),
    (FINAL, "env.docker_image", "a/b:c", lambda it: script(it).image == "a/b:c"),
    (FINAL, "env.privileged", True, lambda it: note(it, "env.privileged")),
    (FINAL, "env.privileged", False, lambda it: not note(it, "env.privileged")),
    (FINAL, "env.extended_shm", False, lambda it: note(it, "env.extended_shm")),
    (FINAL, "env.extended_shm", True, lambda it: not note(it, "env.extended_shm")),
    (FINAL, "env.vars", {"A": "1"}, lambda it: script(it).environment["A"] == "1"),
    (FINAL, "env.vars", {}, lambda it: script(it).environment == {"BAI_SCRIPTS_PATH": "$(PRONY_DIRECTORY)"}),
    (FINAL, "ml.benchmark_code", "a 'b c' $(D)", lambda it: script(it).words == ["a", "b c", "$(D)"]),
    (FINAL, "ml.args", "--lr 3", lambda it: script(it).words == ["python3", "hello.py", "--lr", "3"]),
    (HOROVOD, "ml.args", "--lr 3", lambda it: script(it).words == ["python3", "hello.py", "--lr", "3"]),
    (HOROVOD, "ml.benchmark_code", "#!/bin/bash\n  a=1\n  b $a", lambda it: script(it).words
     == ["/bin/bash", "-c", "#!/bin/bash\na=1\nb $a"]),
    (HOROVOD, "ml.benchmark_code", "a && b", lambda it: script(it).words == ["sh", "-c", "a && b"]),
    (FINAL, "ml", None, lambda it: script(it).command is None and script(it).subject == "python:3"),
    (FINAL, "ml", {"args": "--lr 3"}, lambda it: script(it).command is None and script(it).arguments == "--lr 3"),
    (FINAL, "ml.framework", "mxnet", lambda it: note(it, "ml.framework")),
    (FINAL, "ml.framework", "", lambda it: not note(it, "ml.framework")),
    (FINAL, "ml.script", {"script": "scripts.tar"}, lambda it: script(it).directory == "scripts.tar"),
    (FINAL, "data", {"sources": [SOURCE]}, lambda it: script(it).sources[0].source == SOURCE["src"]),
    (FINAL, "data", {"sources": [SOURCE]}, lambda it: script(it).sources[0].path == SOURCE["path"]),
    (FINAL, "data", {"sources": [SOURCE | {"id": "mnist"}]}, lambda it: script(it).sources[0].name == "mnist"),
    (FINAL, "data", {"sources": [SOURCE | {"md5": "AB" * 16}]}, lambda it: script(it).sources[0].checksum
     == "md5:" + "ab" * 16),
    (FINAL, "data", {"sources": [SOURCE | {"md5": "md5:" + "ab" * 16}]}, lambda it: script(it).sources[0].checksum
     == "md5:" + "ab" * 16),
    (FINAL, "data", {"sources": [SOURCE | {"md5": ""}]}, lambda it: script(it).sources[0].checksum is None),
    (FINAL, "data", {"sources": []}, lambda it: script(it).sources == ()),
    (FINAL, "output", None, lambda it: script(it).metrics == ()),
    (FINAL, "output.metrics", [], lambda it: script(it).metrics == ()),
    (FINAL, "output.metrics", [{"name": "a b", "units": "", "pattern": "x=[0-9.]+"}], lambda it:
     [(one.name, one.unit, one.pattern) for one in script(it).metrics] == [("a b", "", "x=[0-9.]+")]),
    (FINAL, "custom_params", {"python_version": "3.6"}, lambda it: note(it, "custom_params.python_version")),
    (FINAL, "custom_params", {"sagemaker_job_name": "x"}, lambda it: note(it, "custom_params.sagemaker_job_name")),
    (FINAL, "custom_params", {"dashboard": "x"}, lambda it: note(it, "custom_params.dashboard")),
    (FINAL, "custom_params", {"region": "x"}, lambda it: note(it, "custom_params.region")),
    (FINAL, "custom_params", {"merge": True}, lambda it: note(it, "custom_params.merge")),
    (FINAL, "custom_params", {"hyper_params": {"lr": 0.1}}, lambda it: note(it, "custom_params.hyper_params")),
    (FINAL, "server", SERVER, lambda it: script(it).server is None and "not started" in note(it, "server")),
    (INFERENCE, "server.hardware.instance_type", "t3.small", lambda it: note(it, "server.hardware.instance_type")),
    (INFERENCE, "server.env.docker_image", "x:y", lambda it: server(it).image == "x:y"),
    (INFERENCE, "server.env.ports", [80, 81], lambda it: server(it).ports == (80, 81)),
    (INFERENCE, "server.env.start_command", "a b", lambda it: server(it).command == "a b"),
    (INFERENCE, "server.env.start_command", "", lambda it: server(it).command is None),
    (INFERENCE, "server.env.start_command_args", "-x 1", lambda it: server(it).command == "python3 serve.py -x 1"),
    (INFERENCE, "server.env.privileged", True, lambda it: note(it, "server.env.privileged")),
    (INFERENCE, "server.env.extended_shm", False, lambda it: note(it, "server.env.extended_shm")),
    (INFERENCE, "server.env.vars", {"A": "1"}, lambda it: server(it).environment == {"A": "1"}),
    (INFERENCE, "server.models", [SOURCE], lambda it: server(it).sources[0].path == SOURCE["path"]),
    (INFERENCE, "server.output", {"metrics": [{"name": "n", "units": "u", "pattern": "p"}]}, lambda it:
     server(it).metrics[0].name == "n"),
    (INFERENCE, "server.env.readiness_probe", None, lambda it: server(it).readiness is None),
    (INFERENCE, "server.env.readiness_probe", {"path": "/ping"}, lambda it: readiness(it).path == "/ping"),
    (INFERENCE, "server.env.readiness_probe", {"path": "/ping"}, lambda it: readiness(it).port == 8080),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "scheme": "https"}, lambda it: readiness(it).scheme
     == "https"),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "port": 8081}, lambda it: readiness(it).port == 8081),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "initial_delay_seconds": 2}, lambda it:
     readiness(it).initial_delay == 2 * 10**9),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "initial_delay_seconds": 0}, lambda it:
     readiness(it).initial_delay is None),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "period_seconds": 3}, lambda it: readiness(it).period
     == 3 * 10**9),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "timeout_seconds": 4}, lambda it: readiness(it).timeout
     == 4 * 10**9),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "success_threshold": 2}, lambda it:
     readiness(it).success_threshold == 2),
    # There, a server that was not ready was asked on; nothing ended after so many bad answers.
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "failure_threshold": 2}, lambda it:
     readiness(it).failure_threshold is None),
    (OF_2019, "output.metrics", ["epoch"], lambda it: script(it).metrics[0].name == "epoch"),
    (OF_2019, "info.task_name", "Hello, world!", lambda it: it.recipe.name == "Hello-world"),
    (OF_2019, "info.description", None, lambda it: it.recipe.description == "Hello world"),
    (OF_2019, "data.id", "mnist", lambda it: script(it).sources[0].source == "s3://bucket/mnist"),
    (OF_2019, "data.sources", None, lambda it: "nothing is fetched" in note(it, "data.id")),
]  # fmt: skip


@pytest.mark.parametrize(("base", "path", "value", "check"), GOOD, ids=[f"{n}-{one[1]}" for n, one in enumerate(GOOD)])
def test_a_good_value_of_each_key_is_honoured_or_noted(
    base: dict[str, Any], path: str, value: Any, check: Check
) -> None:
    loaded = read(changed(base, path, value))
    assert check(loaded)
    assert loaded.dialect == "benchmark-ai"


BAD: list[tuple[dict[str, Any], str, Any, str, str]] = [
    (FINAL, "spec_version", None, "spec_version", "is missing"),
    (FINAL, "spec_version", 1, "spec_version", "put it in quotes"),
    (FINAL, "infos", {}, "infos", "did you mean info?"),
    (FINAL, "info", None, "info", "is missing"),
    (FINAL, "info.description", None, "info.description", "is missing"),
    (FINAL, "info.description", 1, "info.description", "must be text"),
    (FINAL, "info.lables", {}, "info.lables", "did you mean labels?"),
    (FINAL, "info.labels", {"-a": "b"}, "info.labels.-a", "63"),
    (FINAL, "info.labels", {"a": "b c"}, "info.labels.a", "63"),
    (FINAL, "info.labels", {"a": "x" * 64}, "info.labels.a", "63"),
    (FINAL, "info.labels", {"a": 1}, "info.labels.a", "put it in quotes"),
    (FINAL, "info.labels", {f"l{n}": "x" for n in range(11)}, "info.labels", "does not fit"),
    (FINAL, "info.execution_engine", "aws.batch", "info.execution_engine", "one of default, aws.sagemaker"),
    (FINAL, "info.execution_engine", "aws.sagemaker", "ml.framework", "needs it"),
    (FINAL, "hardware", None, "hardware", "is missing"),
    (FINAL, "hardware.instance_type", None, "hardware.instance_type", "is missing"),
    (FINAL, "hardware.instance_type", "", "hardware.instance_type", "not empty"),
    (FINAL, "hardware.strategy", "client_server", "hardware.strategy", "one of single_node, horovod, inference"),
    (FINAL, "hardware.strategy", "mxnet_parameter_server", "hardware.strategy", "one of single_node, horovod"),
    (FINAL, "hardware.strategy", "inference", "server", "is missing"),
    (HOROVOD, "hardware.distributed.num_instances", 1, "hardware.distributed.num_instances", "2 or more"),
    (HOROVOD, "hardware.distributed.num_instances", "2", "hardware.distributed.num_instances", "whole number"),
    (HOROVOD, "hardware.distributed.processes_per_instance", 4, "hardware.distributed.processes_per_instance",
     "put it in quotes"),
    (HOROVOD, "hardware.distributed.processes_per_instance", "many", "hardware.distributed.processes_per_instance",
     "gpus"),
    (HOROVOD, "hardware", {"strategy": "horovod", "instance_type": "t3.small",
                           "distributed": {"processes_per_instance": "gpus"}},
     "hardware.distributed.processes_per_instance", "has no GPU"),
    (HOROVOD, "hardware", {"strategy": "horovod", "instance_type": "p99.huge",
                           "distributed": {"processes_per_instance": "gpus"}},
     "hardware.distributed.processes_per_instance", "is not known"),
    (FINAL, "env", None, "env", "is missing"),
    (FINAL, "env.docker_image", None, "env.docker_image", "is missing"),
    (FINAL, "env.privileged", "yes", "env.privileged", "did you mean true?"),
    (FINAL, "env.extended_shm", 1, "env.extended_shm", "true or false"),
    (FINAL, "env.vars", {"A": 1}, "env.vars.A", "put it in quotes"),
    (FINAL, "env.vars", {"9A": "1"}, "env.vars", "not a valid variable name"),
    (FINAL, "ml.benchmark_code", 5, "ml.benchmark_code", "must be text"),
    (FINAL, "ml.benchmark_code", "a 'b", "ml.benchmark_code", "cannot be split"),
    (FINAL, "ml.args", 5, "ml.args", "put it in quotes"),
    (FINAL, "ml.framework", "torch", "ml.framework", "one of"),
    (FINAL, "ml.framework_version", "1", "ml.framework_version", "is given without a framework"),
    (FINAL, "ml.script", {"script": "scripts.zip"}, "ml.script.script", ".tar"),
    (FINAL, "data", {}, "data.sources", "is missing"),
    (FINAL, "data", {"sources": [{"path": "/x"}]}, "data.sources[0].src", "is missing"),
    (FINAL, "data", {"sources": [{"src": "/x"}]}, "data.sources[0].path", "is missing"),
    (FINAL, "data", {"sources": [SOURCE | {"md5": "xyz"}]}, "data.sources[0].md5", "32 hexadecimal digits"),
    (FINAL, "data", {"sources": [SOURCE | {"src": "gopher://x/y"}]}, "data.sources[0].src", "is not supported"),
    (FINAL, "data", {"sources": [SOURCE, SOURCE | {"src": "/other"}]}, "workload", "more than one source has the path"),
    (FINAL, "output", {}, "output.metrics", "is missing"),
    (FINAL, "output.metrics", [{"units": "u", "pattern": "p"}], "output.metrics[0].name", "is missing"),
    (FINAL, "output.metrics", [{"name": "n", "pattern": "p"}], "output.metrics[0].units", "is missing"),
    (FINAL, "output.metrics", [{"name": "n", "units": "u"}], "output.metrics[0].pattern", "is missing"),
    (FINAL, "output.metrics", [{"name": "n", "units": "u", "pattern": "("}], "output.metrics[0].pattern",
     "not a regular expression"),
    (FINAL, "output.metrics", [{"name": "n", "units": "u", "pattern": "(a)(b)"}], "output.metrics[0].pattern",
     "2 groups"),
    (FINAL, "custom_params", {"python_version": 3.6}, "custom_params.python_version", "must be text"),
    (FINAL, "custom_params", {"merge": "no"}, "custom_params.merge", "true or false"),
    (FINAL, "custom_params", {"colour": "red"}, "custom_params.colour", "unknown key"),
    (INFERENCE, "server.hardware", None, "server.hardware", "is missing"),
    (INFERENCE, "server.env", None, "server.env", "is missing"),
    (INFERENCE, "server.env.docker_image", None, "server.env.docker_image", "is missing"),
    (INFERENCE, "server.env.ports", None, "server.env.ports", "is missing"),
    (INFERENCE, "server.env.ports", [], "server.env.ports", "at least one"),
    (INFERENCE, "server.env.ports", [70000], "server.env.ports[0]", "65535"),
    (INFERENCE, "server.env.ports", 8080, "server.env.ports", "write [8080]"),
    (INFERENCE, "server.env.start_command", None, "server.env.start_command", "is missing"),
    (INFERENCE, "server.env.liveliness_probe", "/ping", "server.env.liveliness_probe", "readiness_probe"),
    (INFERENCE, "server.env.readiness_probe", "/ping", "server.env.readiness_probe", "must be a map"),
    (INFERENCE, "server.env.readiness_probe", {}, "server.env.readiness_probe.path", "is missing"),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "port": 9}, "server.env.readiness_probe.port",
     "not one of server.env.ports"),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "timout_seconds": 1},
     "server.env.readiness_probe.timout_seconds", "did you mean timeout_seconds?"),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "scheme": "tcp"}, "server.env.readiness_probe.scheme",
     "one of http, https"),
    (INFERENCE, "server.env.readiness_probe", {"path": "/", "period_seconds": 0},
     "server.env.readiness_probe.period_seconds", "1 or more"),
    (INFERENCE, "server.models", [{"src": "/x"}], "server.models[0].path", "is missing"),
    (INFERENCE, "server.models", [{"path": "/x"}], "server.models[0].src", "is missing"),
    (INFERENCE, "server.output", {}, "server.output.metrics", "is missing"),
    (OF_2019, "output.metrics", ["epoch", 3], "output.metrics[1]", "text"),
    (OF_2019, "info", {}, "info.description", "is missing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "path", "value", "where", "said"), BAD, ids=[f"{n}-{one[3]}" for n, one in enumerate(BAD)]
)
def test_a_bad_value_of_each_key_is_told_with_its_line(
    base: dict[str, Any], path: str, value: Any, where: str, said: str
) -> None:
    document = changed(base, path, value)
    with pytest.raises(RecipeError) as found:
        read(document)
    by_path = {one["path"]: one for one in found.value.problems}
    assert list(by_path) == [where]
    assert said in f"{by_path[where]['message']} {by_path[where]['hint']}"
    assert by_path[where]["source"] == "descriptor.toml"
    section = path.partition(".")[0]
    if section in document:
        assert by_path[where]["line"] in (list(document).index(section) + 1, *_lines_of(document, where))


def _lines_of(document: dict[str, Any], where: str) -> list[int]:
    """A problem of two sections together stands at the other one."""
    section = where.partition(".")[0]
    return [list(document).index(section) + 1] if section in document else [1, list(document).index("ml") + 1]


@pytest.mark.parametrize(
    "cron",
    ["*/1 * * * *", "@daily", "0,30 * * * *", "0 0 * * MON-FRI", "0 3 * * *", "@weekly", "@hourly", "5-59/15 * * * *"],
)
def test_every_real_cron_expression_becomes_a_schedule(cron: str) -> None:
    schedule = read(changed(FINAL, "info.scheduling", cron)).recipe.schedule
    assert schedule is not None
    assert schedule.cron == cron


@pytest.mark.parametrize(
    "cron", ["*****", "* * ? * *", "99 99 99 99 99", "0 0 0 0", "single", "", "Single_Run", "@never", "0 0 30 2 *"]
)
def test_what_is_no_cron_expression_is_refused(cron: str) -> None:
    with pytest.raises(RecipeError, match=r"descriptor\.toml:2: info\.scheduling: must be"):
        read(changed(FINAL, "info.scheduling", cron))


def test_every_problem_is_told_at_once() -> None:
    wrong = changed(changed(changed(FINAL, "ml.args", 5), "env.docker_image", None), "hardware.strategy", "solo")
    with pytest.raises(RecipeError) as found:
        read(wrong)
    assert {one["path"] for one in found.value.problems} == {"ml.args", "env.docker_image", "hardware.strategy"}


def test_both_forms_say_that_they_run_once_and_have_a_day() -> None:
    for form in (FINAL, OF_2019):
        loaded = read(form)
        assert (loaded.recipe.measure.repeats, loaded.recipe.limits.timeout) == (1, 86400 * 10**9)
        assert "it runs once" in loaded.notes[-1]


def test_a_descriptor_in_another_format_of_recipes_is_one_too() -> None:
    loaded = loads(json.dumps(FINAL), "json", "descriptor.json")
    assert (loaded.dialect, loaded.recipe.name) == ("benchmark-ai", "hello_world")


@pytest.mark.parametrize("form", [FINAL, OF_2019, INFERENCE, HOROVOD])
def test_the_recipe_that_it_becomes_is_one_that_a_person_could_write(form: dict[str, Any]) -> None:
    loaded = read(form)
    again = loads(dump(loaded.recipe), "yaml")
    assert (again.recipe, again.dialect) == (loaded.recipe, "")


def test_an_override_sets_a_key_of_the_recipe() -> None:
    recipe: Recipe = loads(
        text_of(FINAL), "toml", "d.toml", ["measure.repeats=5", "workload.directory=/scripts"]
    ).recipe
    assert recipe.measure.repeats == 5
    assert isinstance(recipe.workload, ScriptWorkload)
    assert recipe.workload.directory == "/scripts"


def paths(document: Any, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = [
        path for key, value in document.items() if isinstance(value, dict) for path in paths(value, (*before, key))
    ]
    return [*((*before, key) for key in document), *inner]


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@settings(max_examples=count_examples(150), deadline=None, derandomize=True)
@given(base=st.sampled_from([FINAL, OF_2019, INFERENCE, HOROVOD]), data=st.data())
def test_whatever_stands_under_a_key_it_is_read_or_refused_with_a_line(
    base: dict[str, Any], data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(paths(base)))
    document = json.loads(json.dumps(base))
    at = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = data.draw(anything)
    found = outcome(json.dumps(document))
    if isinstance(found, RecipeError):
        assert all(problem["source"] == "descriptor.json" and problem["line"] for problem in found.problems)
    else:
        assert found.jobs("x")


def outcome(text: str) -> LoadedRecipe | RecipeError:
    try:
        return loads(text, "json", "descriptor.json")
    except RecipeError as exc:
        return exc
