"""A service loaded through a server by real agents, alone and together, against a mock whose timing is known."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import polars as pl
import pytest

from chaos.fleet import Fleet, fleet
from lanes import THOROUGH, only_slowly
from servers.waiting import wait_for

WITHIN_S = 300
KINDS = ("--kinds", "model,service")
RECIPE = """
name: together
workload: {kind: service, endpoint: "ENDPOINT", driver: http, options: {path: "/answer?delay=5ms"}}
load: {open: {rate: 200, arrivals: constant}, duration: 2s, repeats: 1, warmup: none}
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A mock server, where it listens."""
    command = [sys.executable, "-m", "prony", "mock", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as mock:
        assert mock.stdout is not None
        found = next((match[0] for line in mock.stdout if (match := re.search(r"http://127[\d.:]+", line))), "")
        assert found
        yield found
        mock.terminate()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server with agents; who kills one of them starts it again."""
    with fleet(tmp_path_factory.mktemp("lab"), lease_ttl="10s") as found:
        found.add_server().start()
        found.wait_ready()
        staff(found, 3 if THOROUGH else 2)
        yield found


def staff(lab: Fleet, count: int) -> None:
    """Have so many agents more wait for loads."""
    agents = [lab.add_agent(lab.url, options=KINDS) for _ in range(count)]
    for agent in agents:
        agent.start()
    for agent in agents:
        wait_for(lambda agent=agent: "enrolled" in agent.said(), "an agent", 180)  # type: ignore[misc]


def begun(lab: Fleet, endpoint: str, *changes: str) -> subprocess.Popen[str]:
    recipe = lab.folder / "recipe.yaml"
    recipe.write_text(RECIPE.replace("ENDPOINT", endpoint))
    words = ["run", str(recipe), "--server", lab.url, *(word for one in changes for word in ("--set", one))]
    return subprocess.Popen(
        [sys.executable, "-m", "prony", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=lab.environment(lab.folder / "person"),
    )  # fmt: skip


def ended(run: subprocess.Popen[str], *, code: int = 0) -> str:
    said, _ = run.communicate(timeout=WITHIN_S)
    assert run.returncode == code, said
    return said


def asked(lab: Fleet, path: str) -> Any:
    with urlopen(f"{lab.url}/api/v1/{path}", timeout=60) as answer:
        return json.load(answer)


def result_of(lab: Fleet) -> Any:
    """Return the result of the newest job."""
    return asked(lab, f"jobs/{newest(lab)}/result")


def newest(lab: Fleet) -> str:
    return str(asked(lab, "jobs?limit=1")["items"][0]["id"])


def rows_of(result: Any) -> pl.DataFrame:
    return pl.read_parquet(Path(result["folder"]) / "samples.parquet")


@pytest.mark.slow
def test_one_agent_loads_a_service_for_a_server(lab: Fleet, endpoint: str) -> None:
    ended(begun(lab, endpoint))
    rows = rows_of(result_of(lab))
    assert rows["index"].to_list() == list(range(400))
    assert set(rows["cause"]) == {"ok"}


@pytest.mark.parametrize("agents", [2, *only_slowly(3)])
def test_agents_send_one_load_together_as_one_would(lab: Fleet, endpoint: str, agents: int) -> None:
    ended(begun(lab, endpoint, f"load.clients.agents={agents}", "load.repeats=2"))
    result = result_of(lab)
    rows = rows_of(result)
    assert result["result"]["state"] == "complete"
    for run in result["result"]["repetitions"]:
        mine = rows.filter(pl.col("repetition") == run["index"])
        assert mine["index"].to_list() == list(range(400))
        assert set(mine["cause"]) == {"ok"}
        begin_ns = run["phases"]["measure"]["begin_ns"]
        assert (mine["due_ns"] - begin_ns).to_list() == [number * 5_000_000 for number in range(400)]
        assert sorted(set(mine["client"])) == list(range(agents))
        members = run["client"]["members"]
        assert len({one["agent"] for one in members} & {"a0", "a1", "a2"}) == agents
        assert sum(one["requests"] for one in members) == 400
        # Half of a round trip to the server: a wrong unit or sign is off by far more than a busy machine.
        assert all(0 < one["timing"]["uncertainty_ns"] < 10 * 10**9 for one in members)
        # A busy machine sends later than it is asked to; what is told must be what the rows show.
        end_ns = run["phases"]["measure"]["end_ns"]
        in_time = (mine["sent_ns"] <= end_ns).sum()
        assert run["client"]["delivered_rate_per_s"] == pytest.approx(in_time / ((end_ns - begin_ns) / 1e9), rel=0.02)
    assert asked(lab, "queue") == {"lots": [], "waiting": 0, "leased": 0}


@pytest.mark.slow
def test_agents_that_ask_an_llm_agree_on_the_salt_of_each_run(lab: Fleet, endpoint: str) -> None:
    asked_by = ["workload.driver=openai-chat", "workload.options={}", "workload.prompts={output_tokens: 2}"]
    ended(begun(lab, endpoint, *asked_by, "load.clients.agents=2", "load.repeats=2", "load.duration=1s"))
    with urlopen(f"{endpoint}/truth", timeout=60) as answer:
        assert json.load(answer)["distinct_bodies"] == rows_of(result_of(lab)).height > 100
    salts = [run["cache"]["salt"] for run in result_of(lab)["result"]["repetitions"]]
    assert len({salt.partition("-")[0] for salt in salts}) == 1
    assert [salt.partition("-")[2] for salt in salts] == ["0", "1"]


@pytest.mark.slow
def test_a_load_whose_agent_is_killed_is_tried_again_whole(lab: Fleet, endpoint: str) -> None:
    with urlopen(Request(f"{endpoint}/truth/reset", method="POST"), timeout=60):
        pass
    run = begun(lab, endpoint, "load.clients.agents=2", "load.duration=10s")
    wait_for(lambda: bool(asked(lab, "leases")) and is_sending(endpoint), "the load", 120)
    (victim,) = {one["agent_id"] for one in asked(lab, "leases") if one["job_id"].endswith(".1")}
    agent = next(agent for number, agent in enumerate(lab.agents) if victim.startswith(f"a{number}-"))
    agent.kill()
    ended(run)
    agent.start()
    first, *_, last = asked(lab, f"jobs/{newest(lab)}")["attempts"]
    assert first["state"] == "failed"
    assert "sent nothing for" in first["reason"]
    assert last["state"] == "complete"
    assert rows_of(result_of(lab))["index"].to_list() == list(range(2000))


def is_sending(endpoint: str) -> bool:
    """Are requests on their way? Counted by the mock itself."""
    with urlopen(f"{endpoint}/truth", timeout=60) as answer:
        return bool(json.load(answer)["requests"])


@pytest.mark.slow
def test_the_first_of_several_agents_starts_the_service_for_all(lab: Fleet) -> None:
    command = f"{sys.executable} -m prony mock --port {{port}}"
    changes = ["workload.endpoint=null", "workload.service=command", f"workload.settings.command={json.dumps(command)}"]
    ended(begun(lab, "", *changes, "load.clients.agents=2"))
    result = result_of(lab)
    assert rows_of(result).height == 400
    assert result["result"]["service"]["name"] == "command"


def test_without_a_server_a_load_for_several_agents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE.replace("ENDPOINT", "http://127.0.0.1:9"))
    words = ["run", str(tmp_path / "recipe.yaml"), "--set", "load.clients.agents=2"]
    run = subprocess.run([sys.executable, "-m", "prony", *words], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "there are no agents without a server" in run.stderr
    assert "--server" in run.stderr


@pytest.mark.slow
def test_a_load_for_more_agents_than_there_are_says_so_and_begins_when_they_come(lab: Fleet, endpoint: str) -> None:
    there = len(lab.agents)
    run = begun(lab, endpoint, f"load.clients.agents={there + 1}")
    wait_for(lambda: bool(asked(lab, "queue")["lots"]), "the job")
    (lot,) = asked(lab, "queue")["lots"]
    wanted = f"needs {there + 1} agents at once, each on its own device"
    assert lot["reason"] == f"{wanted}; {there} that fit are available"
    staff(lab, 1)
    ended(run)
    assert rows_of(result_of(lab)).height == 400
