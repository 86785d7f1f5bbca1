"""Paths of a recipe's services and endpoints lie beside the recipe, wherever the job is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prony.errors import InputError
from prony.kinds.service.prepare import PART, chosen
from prony.kinds.service.schema import ServiceWorkload
from prony.recipe.load import loads


def anchored(base: Path, **workload: Any) -> Any:
    recipe = {"name": "a", "workload": {"kind": "service", **workload}}
    (job,) = loads(json.dumps(recipe), "json").jobs("e1")
    return PART.make_paths_absolute(job, base).work(ServiceWorkload)


def test_a_program_with_a_slash_is_a_path_and_one_without_a_name(tmp_path: Path) -> None:
    found = anchored(tmp_path, service="redis", settings={"program": "bin/redis-server"})
    assert found.settings["program"] == str(tmp_path / "bin" / "redis-server")
    assert anchored(tmp_path, service="redis", settings={"program": "valkey"}).settings["program"] == "valkey"


def test_a_model_of_vllm_is_the_folder_that_is_there_or_else_a_name(tmp_path: Path) -> None:
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    found = anchored(tmp_path, service="vllm", settings={"model": "models/tiny", "python": "env/bin/python"})
    assert found.settings == {
        "model": str(tmp_path / "models" / "tiny"),
        "python": str(tmp_path / "env" / "bin" / "python"),
    }
    named = anchored(tmp_path, service="vllm", settings={"model": "facebook/opt-125m"})
    assert named.settings["model"] == "facebook/opt-125m"


@pytest.mark.parametrize(
    ("driver", "url", "found"),
    [
        ("http", "https://h/a?x=1&ca=ca.pem", "https://h/a?x=1&ca={base}/ca.pem"),
        ("postgres", "postgresql://h?sslmode=require&sslrootcert=/x", "postgresql://h?sslmode=require&sslrootcert=/x"),
        ("http", "http://h/a/?x=%20", "http://h/a/?x=%20"),
        ("redis", "unix:///run/redis.sock", "unix:///run/redis.sock"),
    ],
)
def test_a_certificate_lies_beside_the_recipe(tmp_path: Path, driver: str, url: str, found: str) -> None:
    assert anchored(tmp_path, endpoint=url, driver=driver).endpoint == found.format(base=tmp_path)


def test_what_a_driver_without_prompts_does_not_use_is_named() -> None:
    work = ServiceWorkload(kind="service", service="redis", prompts={"turns": 2})
    with pytest.raises(InputError, match="does not use LLM prompts") as caught:
        chosen(work)
    assert caught.value.hint == "remove workload.prompts"
