from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from prony.analyse.history.sides import Sides, Version, find_sides
from prony.model.estimate import Grade
from prony.model.history import Point
from prony.model.job import Job
from prony.model.workload import Scalar

MODEL = {"kind": "model", "model": "m.onnx", "engine": "onnxruntime"}
SCRIPT = {"kind": "script", "command": "./x", "image": "org/a:1", "server": {"ports": [80], "image": "org/b:1"}}
SERVICE = {"kind": "service", "service": "redis", "settings": {"image": "redis:7"}}
OLD, NEW = "1" * 64, "2" * 64


def version(workload: dict[str, Any], facts: dict[str, str], **measure: Any) -> Version:
    job = Job.read({"id": "e-1", "experiment_id": "e", "name": "n", "cell": {}, "seed": 1, "workload": workload,
                    "measure": measure, "load": {}, "limits": {}})  # fmt: skip
    point = Point(series_id="s", job_id="e-1", experiment_id="e", measured_at=datetime(2026, 1, 1, tzinfo=UTC),
                  grade=Grade.VALID, facts=facts)  # fmt: skip
    return Version(point, job)


def turns(old: Version, new: Version) -> tuple[dict[str, Scalar], dict[str, Scalar], str]:
    found = find_sides(old, new)
    assert isinstance(found, Sides)
    return found.old, found.new, found.text


@pytest.mark.parametrize(
    ("workload", "fact", "key", "before", "after"),
    [
        (
            MODEL,
            "engine",
            "workload.engine_version",
            ("onnxruntime 1.20.0+cpu", "1.20.0"),
            ("onnxruntime 1.21", "1.21"),
        ),
        (MODEL, "model", "workload.checksum", (OLD, f"sha256:{OLD}"), (NEW, f"sha256:{NEW}")),
        (MODEL, "threads", "workload.threads", ("4", 4), ("2", 2)),
        (SCRIPT, "image org/a:1", "workload.image", (f"a@sha256:{OLD}",) * 2, (f"a@sha256:{NEW}",) * 2),
        (SCRIPT, "image org/b:1", "workload.server.image", (f"sha256:{OLD}",) * 2, (f"sha256:{NEW}",) * 2),
        (SERVICE, "image redis:7", "workload.settings.image", (f"sha256:{OLD}",) * 2, (f"sha256:{NEW}",) * 2),
    ],
)
def test_what_a_result_says_of_itself_is_set_back(
    workload: dict[str, Any], fact: str, key: str, before: tuple[str, Scalar], after: tuple[str, Scalar]
) -> None:
    old, new = version(workload, {fact: before[0]}), version(workload, {fact: after[0]})
    assert turns(old, new)[:2] == ({key: before[1]}, {key: after[1]})
    assert isinstance(find_sides(old, old), str)


def test_folders_of_scripts_are_told_by_their_commits_where_these_are_known() -> None:
    old, new = ({"kind": "script", "command": "./x", "directory": f"sha256:{one}"} for one in (OLD, NEW))
    commits = {"commit": "a" * 40}, {"commit": "b" * 40 + "+changes"}
    text = f"scripts commit {'a' * 10} and commit {'b' * 10}+changes"
    assert turns(version(old, commits[0]), version(new, commits[1])) == (
        {"workload.directory": f"sha256:{OLD}"}, {"workload.directory": f"sha256:{NEW}"}, text
    )  # fmt: skip
    assert turns(version(old, {}), version(new, {}))[2] == "scripts sha256:1111111111 and sha256:2222222222"


def test_a_folder_of_some_machine_cannot_be_set_back() -> None:
    old, new = ({"kind": "script", "command": "./x", "directory": one} for one in ("/old", "/new"))
    assert isinstance(find_sides(version(old, {}), version(new, {})), str)


def test_an_option_that_a_service_told_and_no_recipe_set_is_set_back() -> None:
    one, other = ({"service": "redis 7.2", "settings.config.io-threads": str(count)} for count in (1, 4))
    key = "workload.settings.config.io-threads"
    assert turns(version(SERVICE, one), version(SERVICE, other)) == (
        {key: "1"}, {key: "4"}, "the service's config.io-threads 1 and 4"
    )  # fmt: skip


def test_an_option_is_left_alone_where_a_recipe_set_it_or_the_service_is_of_another_version() -> None:
    one, other = ({"service": "redis 7.2", "settings.config.io-threads": str(count)} for count in (1, 4))
    said = SERVICE | {"settings": {"config": {"io-threads": 1}}}
    assert isinstance(find_sides(version(said, one), version(said, other)), str)
    newer = find_sides(version(SERVICE, one), version(SERVICE, other | {"service": "redis 8.0"}))
    assert newer == "no recipe can undo the difference (service, settings.config.io-threads)"


def test_a_service_that_was_started_once_in_older_results_is_set_back_to_that() -> None:
    key, told = "workload.restart", {"service": "redis 7.2"}
    assert turns(version(SERVICE, told), version(SERVICE, told | {"restart": "each-run"})) == (
        {key: "once"}, {key: "each-run"}, "restarts of the service once and each-run"
    )  # fmt: skip


def test_all_that_differs_is_set_at_once() -> None:
    old = version(MODEL, {"engine": "onnxruntime 1.20", "model": OLD}, isolation="fork")
    new = version(MODEL, {"engine": "onnxruntime 1.21", "model": NEW}, isolation="exec")
    before, after, text = turns(old, new)
    assert before == {
        "workload.engine_version": "1.20", "workload.checksum": f"sha256:{OLD}", "measure.isolation": "fork"
    }  # fmt: skip
    assert before.keys() == after.keys()
    assert text.startswith("engine 1.20 and 1.21, model sha256:1111111111 and sha256:2222222222, isolation fork and")


def test_where_nothing_can_be_set_back_it_is_said_what_differs() -> None:
    old = version(MODEL, {"kernel": "6.1", "prony": "0.1", "engine": "onnxruntime 1.20"})
    new = version(MODEL, {"kernel": "6.2", "prony": "0.2", "engine": "openvino 1.21"})
    assert find_sides(old, new) == "no recipe can undo the difference (engine, kernel, prony)"
    assert find_sides(old, old) == "no known difference between the results before and after"
