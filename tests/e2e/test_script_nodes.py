"""A script on several nodes: real agents at a real server, each with its ranks; all of them end together."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from chaos.fleet import Fleet, fleet
from lanes import only_slowly
from prony.client import Client
from prony.model.queue import JobDetail
from servers.needs import lack
from servers.waiting import wait_for

WITHIN_S = 300
# Adds up the ranks of all nodes at rank 0, over the network, and tells everybody the sum.
MEETS = """
import os, socket, time, prony
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
print("I am", rank, flush=True)

def gathered():
    with socket.create_server(place) as listener:
        others = [listener.accept()[0] for _ in range(world - 1)]
        total = sum(int(one.recv(16)) for one in others)
        for one in others:
            one.sendall(str(total).encode())
    return total

def told():
    while True:
        try:
            with socket.create_connection(place, timeout=30) as way:
                way.sendall(str(rank).encode())
                return int(way.recv(16))
        except ConnectionRefusedError:  # rank 0 has not begun
            time.sleep(0.02)

prony.emit({"sum": gathered() if rank == 0 else told()})
"""
REDUCES = """
import prony, torch
import torch.distributed as dist
dist.init_process_group("gloo")
print("I am", dist.get_rank(), flush=True)
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
prony.emit({"sum": total.item()})
dist.destroy_process_group()
"""
DIES = """
import os, sys, time
if os.environ["RANK"] == "3":
    print("out of luck", file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9)
time.sleep(600)
"""
WAITS = """
import os, time, prony
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.1)
prony.emit({"done": 1})
"""
SCRIPTS = {"meets.py": MEETS, "reduces.py": REDUCES, "dies.py": DIES, "waits.py": WAITS}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server with two agents that may run scripts; who kills one of them starts it again."""
    with fleet(tmp_path_factory.mktemp("lab"), lease_ttl="10s") as found:
        (found.folder / "scripts").mkdir()
        for name, text in SCRIPTS.items():
            (found.folder / "scripts" / name).write_text(text)
        found.add_server().start()
        found.wait_ready()
        for _ in range(2):
            found.add_agent(found.url, recorded=False, options=("--kinds", "script")).start()
        for agent in found.agents:
            wait_for(lambda agent=agent: "enrolled" in agent.said(), "an agent", 180)  # type: ignore[misc]
        yield found


def begun(
    lab: Fleet, script: str, *, kind: str = "process", python: str = sys.executable, processes: int = 2
) -> subprocess.Popen[str]:
    """Submit a script for two nodes with so many processes each."""
    launch = {"kind": kind, "processes": processes, "nodes": 2}
    work = {"kind": "script", "command": [python, script], "directory": "scripts", "launch": launch,
            "environment": {"GO": str(lab.folder / "go")}}  # fmt: skip
    recipe = lab.folder / f"{script}.json"
    recipe.write_text(json.dumps({"name": "nodes", "workload": work, "measure": {"repeats": 1}}))
    command = [sys.executable, "-m", "prony", "run", str(recipe), "--server", lab.url]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=lab.environment(lab.folder / "person")
    )


def ended(run: subprocess.Popen[str], *, code: int = 0) -> str:
    said, _ = run.communicate(timeout=WITHIN_S)
    assert run.returncode == code, said
    return said


def newest(lab: Fleet) -> JobDetail:
    with Client(lab.url) as client:
        return client.jobs.get(client.jobs.page(limit=1).items[0].id)


def result_of(lab: Fleet) -> tuple[Any, Path]:
    with Client(lab.url) as client:
        found = client.jobs.result(newest(lab).queued.id)
    return found.result, Path(found.folder)


def ranks(lab: Fleet, script: str) -> int:
    """Count the processes of a script that are there, on any node."""
    return sum(line.endswith(f" {script}") for line in lab.leftovers())


@pytest.fixture(params=["process", *only_slowly("mpirun")])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "mpirun":
        if shutil.which("mpirun") is None:
            lack("mpirun", "mpirun is not installed: apt install openmpi-bin")
        told = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
        if re.search(r"Open MPI\) [1-4]\.", told) is None:  # what a job is told then has a test of its own
            pytest.skip(f"several nodes need Open MPI 4: here is {told.splitlines()[0]}")
    return str(request.param)


def test_ranks_of_all_nodes_meet_and_what_each_tells_arrives(lab: Fleet, kind: str) -> None:
    ended(begun(lab, "meets.py", kind=kind))
    check_all_told(lab)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_torchrun_joins_the_ranks_of_all_nodes(lab: Fleet, torch_python: str, processes: int) -> None:
    ended(begun(lab, "reduces.py", kind="torchrun", python=torch_python, processes=processes))
    check_all_told(lab, processes)


def check_all_told(lab: Fleet, processes: int = 2) -> None:
    result, folder = result_of(lab)
    world = 2 * processes
    assert result.state == "complete"
    rows = pl.read_parquet(folder / "samples.parquet")
    told = rows.filter(pl.col("name") == "sum").sort("rank").select("node", "rank", "value").rows()
    assert told == [(rank // processes, rank, float(sum(range(world)))) for rank in range(world)]
    assert rows.filter(pl.col("name") == "wall_s").height == 1
    (run,) = result.repetitions
    assert sorted((one.rank, one.status) for one in run.ends) == [(rank, 0) for rank in range(world)]
    assert sorted(result.script.nodes) == ["a0", "a1"]
    last = world - 1
    texts = [folder / "logs" / place for place in ("run-0000.rank-0.out", f"part-1/run-0000.rank-{last}.out")]
    assert [text.read_text() for text in texts] == ["I am 0\n", f"I am {last}\n"]


def test_a_rank_that_dies_on_the_second_node_ends_all_of_them_with_its_reason(lab: Fleet, kind: str) -> None:
    said = ended(begun(lab, "dies.py", kind=kind), code=1)
    result, _ = result_of(lab)
    (second,) = result.script.nodes[1:]
    told = f"on agent {second}: rank 3 of 4 ended with signal SIGKILL; the others were ended with it"
    assert result.failure.message == f"{told}; its last output: out of luck"
    assert told in " ".join(said.split())
    assert [one.state for one in newest(lab).attempts] == ["failed"]
    wait_for(lambda: not ranks(lab, "dies.py"), "all ranks to end", 120)


@pytest.mark.slow
def test_an_agent_that_is_killed_ends_the_others_and_all_of_it_is_tried_again(lab: Fleet) -> None:
    run = begun(lab, "waits.py")
    wait_for(lambda: ranks(lab, "waits.py") == 4, "all ranks", 180)
    lab.agents[1].kill()
    wait_for(lambda: not ranks(lab, "waits.py"), "all ranks to end", 180)
    (lab.folder / "go").touch()
    lab.agents[1].start()
    ended(run)
    first, last = newest(lab).attempts
    assert (first.state, last.state) == ("failed", "complete")
    assert re.search(r"agent a1-\w+ sent nothing", first.reason)
    rows = pl.read_parquet(result_of(lab)[1] / "samples.parquet")
    assert sorted(rows.filter(pl.col("name") == "done")["rank"]) == [0, 1, 2, 3]


def test_nodes_without_a_server_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(
        "name: alone\nworkload: {kind: script, command: 'true', launch: {kind: torchrun, nodes: 2}}\n"
    )
    words = [sys.executable, "-m", "prony", "run", str(tmp_path / "recipe.yaml")]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "workload.launch.nodes is 2, but there are no agents without a server" in run.stderr
    assert "prony agent start" in run.stderr
