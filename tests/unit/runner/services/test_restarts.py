"""Whether a service is started before each run where the recipe leaves that open, and where a recipe may ask for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prony.errors import InputError
from prony.kinds.service.prepare import PART
from prony.kinds.service.runner.scene import QUICK_S, Scene
from prony.model.clients import ServiceFacts
from prony.model.job import Job
from prony.ports.driver import Endpoint
from prony.recipe import loads
from prony.runner.services.host import Running
from prony.runner.services.usage import Usage


def job(workload: dict[str, Any], **load: Any) -> Job:
    text = json.dumps({"name": "one", "workload": {"kind": "service"} | workload, "load": load})
    return loads(text, "json", "the test").jobs("x1")[0]


def scene(*, start_s: float = 0.3, has_own_port: bool = False) -> Scene:
    running = Running(
        Endpoint(port=1), {}, ("server",), 1, "", 50.0, Path(), Usage(1), lambda: None, has_own_port=has_own_port
    )
    return Scene(Endpoint(port=1), ServiceFacts(), running=running, start_s=start_s)


REDIS = {"service": "redis"}


def test_a_quick_service_is_started_for_each_run() -> None:
    assert scene().is_quick_to_restart(job(REDIS), asks=False, prepare_s=0.5)


@pytest.mark.parametrize(
    ("found", "load", "asks", "prepare_s"),
    [
        (scene(start_s=QUICK_S), {}, False, 0.1),
        (scene(), {}, False, QUICK_S),
        (scene(), {}, True, 0.1),
        (scene(), {"search": {}, "slo": {"e2e_ms.p50": 5}}, False, 0.1),
        (scene(), {"clients": {"agents": 2}, "closed": {"concurrency": 2}}, False, 0.1),
        (scene(has_own_port=True), {}, False, 0.1),
        (Scene(Endpoint(), ServiceFacts()), {}, False, 0.0),
    ],
    ids=["slow start", "much data", "an LLM", "a search", "several agents", "a port of its own", "an endpoint"],
)
def test_one_start_serves_all_runs_of(found: Scene, load: dict[str, Any], asks: bool, prepare_s: float) -> None:
    assert not found.is_quick_to_restart(job(REDIS, **load), asks=asks, prepare_s=prepare_s)


def test_a_server_is_new_until_it_was_loaded_or_holds_the_data_of_another_job() -> None:
    found, mine = scene(), job(REDIS)
    found.prepared.add(mine.id)
    assert found.is_new_for(mine)
    found.prepared.add("x1-002")
    assert not found.is_new_for(mine)
    found.prepared.remove("x1-002")
    found.was_loaded = True
    assert not found.is_new_for(mine)


def test_an_endpoint_cannot_be_started_again() -> None:
    with pytest.raises(InputError, match="it has no effect on an endpoint"):
        job({"endpoint": "http://127.0.0.1:1", "driver": "http", "restart": "each-run"})


def test_several_agents_cannot_have_a_server_for_each_run() -> None:
    nginx = {"service": "nginx", "restart": "each-run"}
    with pytest.raises(InputError, match="does not work with several agents"):
        PART.check(job(nginx, clients={"agents": 2}, closed={"concurrency": 2}))
