"""A real server with a real agent that has few programs: it is sent only what it can start."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.fleet import Fleet, fleet
from servers.commands import call_prony
from servers.waiting import wait_for

WITHIN_S = 120
RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server, and an agent whose PATH holds one program: a redis-server."""
    with fleet(tmp_path_factory.mktemp("lab")) as found:
        programs = found.folder / "bin"
        programs.mkdir()
        server = programs / "redis-server"
        server.write_text("#!/bin/sh\necho 'Redis server v=7.0.15 sha=00000000:0'\n")
        server.chmod(0o755)
        found.add_server().start()
        found.wait_ready()
        agent = found.add_agent(found.url, recorded=False, options=("--kinds", "model,service,script"))
        agent.environment = {**agent.environment, "PATH": str(programs)}
        agent.start()
        wait_for(lambda: "enrolled" in agent.said(), "the agent", WITHIN_S)
        yield found


def prony(lab: Fleet, *words: str | Path, code: int = 0) -> str:
    environment = lab.environment(lab.folder / "person")
    return call_prony(*words, "--server", lab.url, code=code, environment=environment).stdout


def submit(lab: Fleet, recipe: str | Path) -> dict[str, Any]:
    """Submit, wait for nothing, and return the experiment's one job as the server has it."""
    prony(lab, "run", recipe, "--detach")
    return dict(jobs_of(lab, "last")[0])


def jobs_of(lab: Fleet, experiment: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(prony(lab, "jobs", "--experiment", experiment, "--json"))
    return found


@pytest.mark.parametrize(("recipe", "service"), [("vllm.yaml", "vllm"), ("qdrant.yaml", "qdrant")])
def test_check_says_that_no_agent_fits_and_why(lab: Fleet, recipe: str, service: str) -> None:
    said = prony(lab, "check", RECIPES / recipe, code=1)
    assert f"service={service}" in said
    assert f"service {service} (has" in " ".join(said.split())
    found = json.loads(prony(lab, "check", RECIPES / recipe, "--json", code=1))
    fit = found["lots"][0]["agents"][0]
    assert not found["runnable"]
    assert not fit["fits"]
    lack = fit["lacks"][0]
    assert (lack["fact"], lack["wanted"]) == ("service", service)
    assert lack["reason"].startswith(f"{service} not found on PATH; to get it: ")


def test_check_says_that_an_agent_fits_which_has_the_service(lab: Fleet) -> None:
    found = json.loads(prony(lab, "check", RECIPES / "redis.yaml", "--json"))
    assert found["runnable"]
    assert [fit["fits"] for fit in found["lots"][0]["agents"]] == [True]


def test_a_job_that_nobody_can_start_waits_with_the_reason_and_is_not_lent(lab: Fleet) -> None:
    job = submit(lab, RECIPES / "qdrant.yaml")
    assert (job["state"], job["attempt"], job["agent_id"]) == ("waiting", 0, None)
    assert job["reason"].startswith("no agent fits: a0 lacks service qdrant (has")
    assert "qdrant not found on PATH" in job["reason"]
    # The agent asks for work meanwhile, and gets what comes after: so it was passed over, not late.
    after = lab.folder / "after.json"
    after.write_text(
        json.dumps({"name": "after", "workload": {"kind": "script", "command": [sys.executable, "-c", "1"]}})
    )
    prony(lab, "run", after)
    again = jobs_of(lab, job["experiment_id"])[0]
    assert (again["state"], again["attempt"]) == ("waiting", 0)


@pytest.mark.parametrize(
    ("workload", "fact"),
    [
        ({"kind": "script", "command": "true", "image": "example.org/image:1"}, "container"),
        ({"kind": "script", "command": "true", "launch": {"kind": "mpirun", "processes": 2}}, "launcher"),
        ({"kind": "service", "service": "redis", "settings": {"image": "redis:7"}}, "container"),
    ],
)
def test_a_launcher_or_a_container_engine_that_is_not_there_is_told(
    lab: Fleet, workload: dict[str, Any], fact: str
) -> None:
    recipe = lab.folder / "needs.json"
    recipe.write_text(json.dumps({"name": "needs", "workload": workload}))
    found = json.loads(prony(lab, "check", recipe, "--json", code=1))
    lack = found["lots"][0]["agents"][0]["lacks"][0]
    assert lack["fact"] == fact
    assert "is not on PATH; to get it: " in lack["reason"]


def test_place_where_asks_for_abilities(lab: Fleet) -> None:
    recipe = RECIPES / "quickstart.yaml"
    where = "place.where={service.redis: '>=7', access: gray, probe: host}"
    assert json.loads(prony(lab, "check", recipe, "--set", where, "--json"))["runnable"]
    none = json.loads(prony(lab, "check", recipe, "--set", "place.where={service.redis: '>=8'}", "--json", code=1))
    assert none["lots"][0]["agents"][0]["lacks"][0]["has"] == "7.0.15"


def test_an_agent_is_shown_with_what_it_can_do_and_why_not_more(lab: Fleet) -> None:
    shown = " ".join(prony(lab, "agents", "show", "a0").split())
    assert "service redis yes 7.0.15 program" in shown
    assert "qdrant not found on PATH" in shown
    assert "access white, gray, black" in shown
    offered = json.loads(prony(lab, "agents", "--json"))[0]["capabilities"]
    by_name = {(one["kind"], one["name"]): one for one in offered["abilities"]}
    assert by_name["service", "redis"]["state"] == "ready"
    assert by_name["container", "docker"]["state"] == "missing"
    assert by_name["probe", "host"]["state"] == "ready"
    assert json.loads(prony(lab, "agents", "show", "a0", "--json"))["capabilities"] == offered
