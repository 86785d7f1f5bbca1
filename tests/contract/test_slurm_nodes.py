"""Jobs over several nodes of one Slurm allocation: the nodes meet inside it, and no server is needed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest
from executor_runs import PATIENCE_S, has_ended, is_measuring, look_until, make_executor, printed, target_options

from prony.app.targets import add_target
from prony.model.target import Handle, OptionValue, Payload, PlaceEnding, Target
from prony.plugins.services.redis import Redis
from prony.ports.executor import Executor
from prony.recipe import loads
from prony.runner.job_folder import write_job_folder
from prony.store.home import Home
from servers.commands import call_prony
from servers.needs import lack
from servers.slurm import Slurm

pytest_plugins = ["executor_fixtures"]

RECIPE = """\
name: nodes
workload:
  kind: script
  command: {command}
  launch: {{kind: {launch}, nodes: 2, processes: 2}}
  metrics: [{{name: rank, pattern: "rank=([0-9]+)"}}]
measure: {{repeats: {repeats}, warmup: 0}}
limits: {{timeout: 120s}}
"""
HOROVOD = Path(__file__).parents[2] / "recipes/benchmark-ai/horovod/descriptor.toml"
SAYS_RANK = """sh -c 'echo rank=$RANK; echo world=$WORLD_SIZE'"""

APART = """\
name: apart
workload: {kind: service, service: redis}
load: {closed: {concurrency: 2}, duration: 500ms, repeats: 1, clients: {agents: 1, on: cpus}}
"""
ONE_NODE = """\
name: one
workload:
  kind: script
  command: sh -c 'echo rank=$MINE'
  environment: {MINE: "7"}
  launch: {kind: mpirun, processes: 2}
  metrics: [{name: rank, pattern: "rank=([0-9]+)"}]
measure: {repeats: 1, warmup: 0}
"""
REDUCES = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print(f"rank={int(total.item())}", flush=True)
dist.destroy_process_group()
"""


@pytest.fixture
def executor(request: pytest.FixtureRequest, place: Path, tmp_path: Path) -> Executor:
    options: dict[str, OptionValue] = target_options("slurm", request, tmp_path / "there")
    return make_executor("slurm", options, place)


@pytest.fixture
def submit(executor: Executor, tmp_path: Path) -> Callable[..., Handle]:
    """Return what sends a script to two nodes."""

    def send(command: str = SAYS_RANK, launch: str = "process", repeats: int = 1) -> Handle:
        folder = tmp_path / "sent"
        jobs = loads(RECIPE.format(command=json.dumps(command), launch=launch, repeats=repeats)).jobs("exp")
        write_job_folder(folder, jobs, jobs)
        key = f"prony-{tmp_path.name[-20:].strip('_').replace('_', '-')}-00000000"
        return executor.submit(Payload(key=key, folder=str(folder), nodes=2))

    return send


def fetch_result(executor: Executor, handle: Handle, tmp_path: Path) -> tuple[dict[str, Any], Path]:
    executor.fetch(handle, tmp_path / "in")
    folder = tmp_path / "in" / "result" / "exp-001"
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found, folder


def ranks_in(folder: Path) -> list[float]:
    rows = pl.read_parquet(folder / "samples.parquet")
    return sorted(rows.filter(pl.col("name") == "rank")["value"].to_list())


def is_part(process: psutil.Process, index: int) -> bool:
    return f"{index}/2" in (process.info["cmdline"] or ()) and "--part" in (process.info["cmdline"] or ())


@pytest.mark.parametrize("launch", ["process", pytest.param("mpirun", marks=pytest.mark.slow)])
def test_ranks_of_two_nodes_make_one_result_without_a_server(
    executor: Executor, submit: Callable[..., Handle], tmp_path: Path, launch: str
) -> None:
    if launch == "mpirun" and shutil.which("mpirun") is None:
        lack("mpirun", "no mpirun here: apt-get install openmpi-bin")
    handle = submit(launch=launch)
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, len(seen.nodes)) == (PlaceEnding.DONE, 1)
    assert seen.nodes[0] == "n[1-2]"
    ranks = {line for text in printed(seen).values() for line in text.splitlines() if line.startswith("rank=")}
    assert ranks == {f"rank={number}" for number in range(4)}
    assert any(name.startswith("part-1/") for name in printed(seen))
    result, folder = fetch_result(executor, handle, tmp_path)
    assert (result["state"], result["failure"]) == ("complete", None)
    assert ranks_in(folder) == [0, 1, 2, 3]
    assert len(result["script"]["nodes"]) == 2
    assert (folder / "environment-1.json").exists()
    executor.end([handle])
    assert list((tmp_path / "there" / "runs").iterdir()) == []


@pytest.mark.slow
def test_a_horovod_descriptor_runs_by_mpirun_on_the_nodes_of_an_allocation(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("mpirun") is None:
        lack("mpirun", "no mpirun here: apt-get install openmpi-bin")
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))
    options = target_options("slurm", request, tmp_path / "there")
    add_target(Home(tmp_path / "home").create(), "cluster", {"kind": "slurm", **options})
    done = call_prony("run", HOROVOD, "--no-container", "--on", "cluster", "--no-report", "--json")
    (job,) = json.loads(done.stdout)["jobs"]
    script = job["result"]["script"]
    assert (job["state"], script["launcher"].partition(" ")[0], len(script["nodes"])) == ("complete", "mpirun", 2)
    (repetition,) = job["result"]["repetitions"]
    assert sorted(end["rank"] for end in repetition["ends"]) == [0, 1]
    assert job["result"]["placement"]["nodes"] == ["n[1-2]"]
    assert list((tmp_path / "there" / "runs").iterdir()) == []


@pytest.mark.slow
def test_mpirun_on_one_node_starts_its_ranks_itself_with_all_variables(executor: Executor, tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        lack("mpirun", "no mpirun here: apt-get install openmpi-bin")
    jobs = loads(ONE_NODE).jobs("exp")
    write_job_folder(tmp_path / "sent", jobs, jobs)
    handle = executor.submit(Payload(key="prony-one-1-00000000", folder=str(tmp_path / "sent")))
    look_until(executor, handle, has_ended)
    result, folder = fetch_result(executor, handle, tmp_path)
    assert (result["state"], result["failure"]) == ("complete", None)
    assert ranks_in(folder) == [7, 7]
    executor.end([handle])


@pytest.mark.slow
def test_a_service_and_its_clients_have_nodes_of_two_targets_in_one_job(
    request: pytest.FixtureRequest, executor: Executor, slurm: Slurm, tmp_path: Path
) -> None:
    if reason := Redis().available(Redis.Options()):
        lack("redis", reason)
    jobs = loads(APART).jobs("exp")
    write_job_folder(tmp_path / "sent", jobs, jobs)
    cheap = target_options("slurm", request, tmp_path / "there") | {"partition": "cheap"}
    others = Target(name="cpus", kind="slurm", options=cheap)
    key = "prony-apart-1-00000000"
    handle = executor.submit(Payload(key=key, folder=str(tmp_path / "sent"), nodes=2, others=others))
    seen = look_until(executor, handle, has_ended)
    assert seen.ending is PlaceEnding.DONE
    assert sorted(seen.nodes[0].split(",")) == ["n1", "n2"]
    parts = slurm.run("squeue", "--states=all", "--noheader", f"--name={key}", "--format=%i %P").split("\n")
    base = handle.native_id.partition("+")[0]
    assert sorted(filter(None, parts)) == [f"{base}+0 test", f"{base}+1 cheap"]
    result, folder = fetch_result(executor, handle, tmp_path)
    assert (result["state"], result["service"]["name"]) == ("complete", "redis")
    (run,) = result["repetitions"]
    assert [member["requests"] > 0 for member in run["client"]["members"]] == [True]  # the service's node sends nothing
    assert pl.read_parquet(folder / "samples.parquet").height == run["client"]["members"][0]["requests"]
    executor.end([handle])


@pytest.mark.slow
def test_a_rank_that_dies_ends_all_nodes_with_its_reason(
    executor: Executor, submit: Callable[..., Handle], tmp_path: Path
) -> None:
    handle = submit("""sh -c 'if [ $RANK = 3 ]; then echo out of luck >&2; kill -9 $$; fi; sleep 1000'""")
    look_until(executor, handle, has_ended)
    result, _ = fetch_result(executor, handle, tmp_path)
    assert result["state"] == "failed"
    assert "rank 3" in json.dumps(result["failure"])
    executor.end([handle])


@pytest.mark.slow
def test_torchrun_joins_the_ranks_of_both_nodes(
    executor: Executor, submit: Callable[..., Handle], tmp_path: Path, torch_python: str
) -> None:
    script = tmp_path / "reduces.py"
    script.write_text(REDUCES)
    handle = submit(f"{torch_python} {script}", launch="torchrun")
    look_until(executor, handle, has_ended, within_s=180)
    result, folder = fetch_result(executor, handle, tmp_path)
    assert (result["state"], result["failure"]) == ("complete", None)
    assert ranks_in(folder) == [6, 6, 6, 6]  # each has the sum of all four
    executor.end([handle])


@pytest.mark.slow
def test_two_nodes_keep_what_they_measured_before_their_time_limit(
    request: pytest.FixtureRequest, place: Path, submit: Callable[..., Handle], executor: Executor, tmp_path: Path
) -> None:
    handle = submit("sh -c 'echo rank=$RANK; sleep 0.5'", repeats=600)
    look_until(executor, handle, lambda one: any(event.done for event in one.events))
    slurm = request.getfixturevalue("slurm")
    slurm.run("scancel", "--signal=TERM", handle.native_id)  # what --signal has sent before the limit
    look_until(executor, handle, has_ended)
    result, folder = fetch_result(executor, handle, tmp_path)
    assert (result["state"], result["failure"]) == ("partial", None)
    assert ranks_in(folder)[:1] == [0]
    executor.end([handle])


@pytest.mark.slow
def test_a_node_whose_runner_is_killed_ends_the_others_and_what_they_measured_is_kept(
    executor: Executor, submit: Callable[..., Handle], tmp_path: Path
) -> None:
    handle = submit("sleep 1000")
    look_until(executor, handle, is_measuring)
    everyone = list(psutil.process_iter(["cmdline", "cwd"]))
    runs = str(tmp_path / "there" / "runs" / handle.key)
    (other,) = [one for one in everyone if is_part(one, 1) and one.info["cwd"] == runs and one.ppid() != 1]
    first = [one for one in everyone if is_part(one, 0) and one.info["cwd"] == runs]
    other.kill()
    killed_at = time.monotonic()
    _, alive = psutil.wait_procs(first, timeout=PATIENCE_S)
    assert alive == []
    assert time.monotonic() - killed_at < PATIENCE_S
    look_until(executor, handle, has_ended)
    result, _ = fetch_result(executor, handle, tmp_path)
    assert (result["state"], result["failure"]["code"]) == ("failed", "agent_lost")
    executor.end([handle])
