"""A script's nodes: which ranks each has, what they agree on, and one result of what all of them brought."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

from prony.app.check_jobs import check_alone
from prony.errors import CapacityError, InputError
from prony.instruments.samples import telemetry_frame
from prony.kinds.script.runner import mpi_launch_proxy
from prony.kinds.script.runner.mpi import build_mpi_launch, check_mpi, daemon_of, proxied_launches
from prony.kinds.script.runner.node import ScriptNode
from prony.kinds.script.runner.nodes import Nodes
from prony.kinds.script.runner.plan import ProcessPlace, plan_processes
from prony.kinds.script.samples import EmittedValue, series_of, told_frame
from prony.kinds.script.schema import Launch, ScriptWorkload
from prony.model.clients import ClientTiming
from prony.model.gang import Offset, Part
from prony.model.gang import Told as Heard
from prony.model.job import Job
from prony.model.result import Failure, Phase, RankEnd, Repetition, Result, ResultState, ScriptFacts
from prony.recipe import loads
from prony.runner.folder import write_frame
from prony.runner.gang import Gang, loopback_id
from prony.runner.merge_gang import merge, reason_of
from prony.runner.parts import PartFolder

from .script_jobs import executed, values
from .script_jobs import job_of as job_in

AT = datetime(2025, 6, 1, tzinfo=UTC)
S = 10**9
DIED = Failure(code="script_signal", message="rank 3 of 4 ended with signal SIGKILL")
FELL = Failure(code="script_exit", message="rank 0 of 4 ended with exit code 1")


def job_of(nodes: int = 2, **launch: Any) -> Job:
    work = {"kind": "script", "command": "python train.py", "launch": {"processes": 2, "nodes": nodes} | launch}
    return loads(json.dumps({"name": "x", "workload": work}), "json").jobs("x1")[0]


JOB = job_of()


def place_in(folder: Path) -> ProcessPlace:
    (folder / "logs").mkdir()
    return ProcessPlace(folder, folder / "logs", folder, "run-0000")


def node_folder(path: Path, index: int, *, ends: list[RankEnd], failure: Failure | None = None) -> PartFolder:
    """Return what the agent of one node brings whose clock is behind by as many seconds as its number is."""
    offset = index * S
    own = [
        EmittedValue(10 * S - offset, "wall_s", 1.0, "prony", unit="s"),
        EmittedValue(10 * S - offset, "cpu_s", 2.0, "prony", unit="s"),
    ]
    told = [EmittedValue(9 * S - offset, "loss", 10.0 * rank, "emit", rank=rank) for rank in (2 * index, 2 * index + 1)]
    phase = Phase(
        begin_ns=8 * S - offset + index, end_ns=10 * S - offset + index, cpu_ns=2 * S, rss_peak_kib=100 + index
    )
    run = Repetition(
        index=0, state="ok" if failure is None else "failed", started_at=AT, phases={"measure": phase}, failure=failure,
        ends=tuple(ends), strays=1, timing=ClientTiming(offset_ns=offset, uncertainty_ns=1000),
    )  # fmt: skip
    result = Result(
        prony_version="1", job_id=path.name, experiment_id="x1", started_at=AT, ended_at=AT + timedelta(seconds=1),
        state=ResultState.COMPLETE if failure is None else ResultState.FAILED, repetitions=(run,), failure=failure,
        script=ScriptFacts(command=("python", "train.py"), notes=(f"note {index}",)),
    )  # fmt: skip
    (path / "logs").mkdir(parents=True)
    (path / "logs" / f"run-0000.rank-{2 * index}.out").write_text("said")
    (path / "environment.json").write_text("{}")
    write_frame(path / "samples.parquet", told_frame(0, "measure", [*told, *own], index))
    write_frame(path / "telemetry.parquet", telemetry_frame([]))
    return PartFolder(f"a{index}", path, result)


def ends(*pairs: tuple[int, int, int]) -> list[RankEnd]:
    return [RankEnd(rank=rank, status=status, end_ns=at) for rank, status, at in pairs]


def test_two_nodes_become_one_result_with_every_rank_on_one_clock(tmp_path: Path) -> None:
    parts = [node_folder(tmp_path / f"a{one}", one, ends=ends((2 * one, 0, 10 * S - one * S))) for one in (0, 1)]
    result = merge(parts, JOB, tmp_path / "whole", None)
    rows = pl.read_parquet(tmp_path / "whole" / "samples.parquet")
    told = rows.filter(pl.col("name") == "loss").select("node", "rank", "value", "at_ns").rows()
    assert told == [(0, 0, 0.0, 9 * S), (0, 1, 10.0, 9 * S), (1, 2, 20.0, 9 * S), (1, 3, 30.0, 9 * S)]
    assert rows["index"].to_list() == list(range(rows.height))
    assert dict(rows.filter(pl.col("origin") == "prony").select("name", "value").rows()) == {
        "wall_s": 2 + 1e-9, "cpu_s": 4.0,
    }  # fmt: skip
    (run,) = result.repetitions
    assert (result.state, run.state, run.strays) == ("complete", "ok", 2)
    assert (run.phases["measure"].rss_peak_kib, run.timing) == (101, None)
    assert [(one.rank, one.end_ns) for one in run.ends] == [(0, 10 * S), (2, 10 * S)]
    assert result.script is not None
    assert (result.script.nodes, result.script.notes) == (("a0", "a1"), ("note 0", "note 1"))
    assert (tmp_path / "whole" / "logs" / "part-1" / "run-0000.rank-2.out").read_text() == "said"
    assert [one.runs for one in series_of(rows, JOB.work(ScriptWorkload)) if one.name == "loss"] == [{0: 15.0}]


def test_of_several_nodes_that_failed_the_one_whose_rank_died_first_is_the_reason(tmp_path: Path) -> None:
    first = node_folder(tmp_path / "a0", 0, ends=ends((0, 1, 9 * S + 5)), failure=FELL)
    second = node_folder(tmp_path / "a1", 1, ends=ends((2, -15, 8 * S + 9), (3, -9, 8 * S + 4)), failure=DIED)
    reason = reason_of([first, second], JOB)
    assert reason is not None
    assert reason.message == "on agent a1: rank 3 of 4 ended with signal SIGKILL"
    result = merge([first, second], JOB, tmp_path / "whole", reason)
    (run,) = result.repetitions
    assert (run.state, run.failure) == ("failed", reason)
    assert [one.rank for one in run.ends] == [3, 0, 2]


def test_what_went_wrong_beside_the_script_is_the_reason_before_any_rank(tmp_path: Path) -> None:
    first = node_folder(tmp_path / "a0", 0, ends=ends((0, 1, 9 * S)), failure=FELL)
    lost = Failure(code="runner_lost", message="the runner was killed", whose="prony")
    second = node_folder(tmp_path / "a1", 1, ends=[], failure=lost)
    reason = reason_of([first, second], JOB)
    assert reason is not None
    assert (reason.code, reason.whose) == ("runner_lost", "prony")


def test_a_launcher_that_gave_up_is_no_reason_where_a_rank_died(tmp_path: Path) -> None:
    gave_up = Failure(code="script_exit", message="the launcher ended with exit code 1")
    first = node_folder(tmp_path / "a0", 0, ends=[], failure=gave_up)
    second = node_folder(tmp_path / "a1", 1, ends=ends((3, -9, 9 * S)), failure=DIED)
    reason = reason_of([first, second], JOB)
    assert reason is not None
    assert reason.code == "script_signal"


def test_a_run_that_a_node_did_not_bring_is_none_of_all(tmp_path: Path) -> None:
    result = merge([node_folder(tmp_path / "a0", 0, ends=[])], JOB, tmp_path / "whole", DIED)
    (run,) = result.repetitions
    assert (result.state, run.state) == ("failed", "cancelled")
    rows = pl.read_parquet(tmp_path / "whole" / "samples.parquet")
    assert set(rows["name"]) == {"loss"}


def test_ranks_are_counted_through_all_nodes(tmp_path: Path) -> None:
    node = ScriptNode(index=1, of=3, address="10.0.0.7", port=5000)
    plan = plan_processes(Launch(processes=2, nodes=3), ["true"], {"PATH": "/bin"}, place_in(tmp_path), node)
    told = [one["environment"] for one in plan.processes]
    assert [one["RANK"] for one in told] == ["2", "3"]
    assert [one["LOCAL_RANK"] for one in told] == ["0", "1"]
    assert {(one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"]) for one in told} == {("6", "2")}
    assert {(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in told} == {("10.0.0.7", "5000")}
    assert (plan.first, plan.world) == (2, 6)
    assert {stream.rank for stream in plan.streams} == {2, 3}


def test_gloo_is_told_the_interface_unless_the_recipe_says_another(tmp_path: Path) -> None:
    node = ScriptNode(index=1, of=2, address="10.0.0.7", port=5000, interface="eth1")
    own = {"PATH": "/bin", "GLOO_SOCKET_IFNAME": "ib0"}
    place = place_in(tmp_path)
    plans = [plan_processes(Launch(nodes=2), ["true"], variables, place, node) for variables in ({"PATH": "/bin"}, own)]
    assert [plan.processes[0]["environment"]["GLOO_SOCKET_IFNAME"] for plan in plans] == ["eth1", "ib0"]


def test_a_node_on_another_machine_knows_the_interface_of_its_own_address() -> None:
    _, node = Nodes(Met(said_first()), "127.0.0.1").agree(0, "measure")
    assert node.interface == next(name for name, all_ in psutil.net_if_addrs().items() if "127.0.0.1" in str(all_))
    assert Nodes(Met(said_first()), "some.host").agree(0, "measure")[1].interface == ""


def test_torchrun_is_told_which_node_it_is_and_where_the_first_listens(tmp_path: Path) -> None:
    program = tmp_path / "torchrun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    launch = Launch(kind="torchrun", processes=2, nodes=3)
    node = ScriptNode(index=1, of=3, address="10.0.0.7", port=5000)
    plan = plan_processes(launch, ["train"], {"PATH": str(tmp_path)}, place_in(tmp_path), node)
    words = plan.processes[0]["argv"][1:7]
    assert words == [
        "--nnodes=3", "--nproc-per-node=2", "--node-rank=1", "--master-addr=10.0.0.7", "--master-port=5000",
        "--no-python",
    ]  # fmt: skip
    assert {stream.rank for stream in plan.streams} == {2, 3, None}


class Met(Gang):
    """A gang whose others have said what they say."""

    def __init__(self, *others: dict[str, Any]) -> None:
        super().__init__(JOB, Part(index=1, of=2), lambda _: None, lambda: False)
        self.others = others

    def meet(self, name: str, says: str = "", *, on_tick: Callable[[], None] = lambda: None) -> Heard:
        on_tick()
        said = (*map(json.dumps, self.others), says)
        return Heard(name=name, said=said, at_ns=0, clock=Offset(offset_ns=0, uncertainty_ns=0))


def said_first(**changes: Any) -> dict[str, Any]:
    return {"machine": "another", "kind": "warmup", "address": "10.0.0.7", "port": 5000, "launches": True} | changes


def test_all_nodes_run_what_the_first_says_and_meet_there() -> None:
    kind, node = Nodes(Met(said_first()), "10.0.0.8").agree(0, "measure")
    assert (kind, node) == ("warmup", ScriptNode(index=1, of=2, address="10.0.0.7", port=5000))
    assert Nodes(Met(said_first(kind=None)), "").agree(0, "measure")[0] is None
    assert Nodes(Met(said_first(machine=loopback_id())), "").agree(0, "measure")[1].is_shared


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", ""])
def test_nodes_on_other_machines_cannot_meet_at_a_loopback(address: str) -> None:
    with pytest.raises(InputError, match="cannot reach the first node") as caught:
        Nodes(Met(said_first(address=address)), "").agree(0, "measure")
    assert (caught.value.code, "--address" in caught.value.hint) == ("loopback", True)


def test_a_job_for_several_nodes_is_refused_where_there_is_no_server() -> None:
    with pytest.raises(InputError, match=r"workload\.launch\.nodes is 2") as caught:
        check_alone([job_of(nodes=1), JOB])
    assert (caught.value.code, "prony agent start" in caught.value.hint) == ("needs_agents", True)


DUET = {side: {"workload.arguments": side} for side in ("a", "b")}


@pytest.mark.parametrize("changes", [{"place": {"devices": "each"}}, {"duet": DUET}])
def test_nodes_go_with_one_job_for_any_agents_alone(changes: dict[str, Any]) -> None:
    work = {"kind": "script", "command": "true", "launch": {"nodes": 2}}
    with pytest.raises(InputError, match=r"workload\.launch\.nodes"):
        loads(json.dumps({"name": "x", "workload": work} | changes), "json")


def test_one_that_runs_by_hand_what_is_for_several_is_told_so(tmp_path: Path) -> None:
    done = executed(job_in(tmp_path, "", launch={"nodes": 2}), tmp_path / "out")
    assert done.result.failure is not None
    assert done.result.failure.code == "needs_agents"


def test_nodes_that_need_not_be_spread_are_processes_on_one_machine_and_that_is_said(tmp_path: Path) -> None:
    text = "import os, prony\nprony.emit({'of': int(os.environ['WORLD_SIZE'])})\n"
    job = job_in(tmp_path, text, launch={"nodes": 2, "processes": 2, "spread": False})
    check_alone([job])
    done = executed(job, tmp_path / "out")
    assert done.result.failure is None
    assert values(done, "of") == [4, 4, 4, 4]
    assert done.result.script is not None
    assert done.result.script.notes == ("all nodes ran on this machine, with 4 processes",)


def test_what_mpirun_wants_started_elsewhere_is_left_for_the_others_and_stays_with_its_parent(tmp_path: Path) -> None:
    words = [sys.executable, "-I", mpi_launch_proxy.__file__]
    orders = tmp_path / "orders"
    first = ScriptNode(index=0, of=3)
    launch, variables = build_mpi_launch(["mpirun", "-np", "6"], ["python", "-I", "rank.py", "order"], first, 2, orders)
    assert launch[launch.index("--host") + 1] == "localhost:2,prony-node-1:2,prony-node-2:2"
    assert proxied_launches(orders, 3) is None
    for index in (1, 2):
        told = [f"prony-node-{index}", " orted", "--daemonize", "-mca", "ess", '"env"', "-mca", "vpid", str(index)]
        subprocess.run([*words, *told], check=True, env=variables)
    texts = proxied_launches(orders, 3)
    assert texts is not None
    assert [daemon_of(text)[-1] for text in texts] == ["1", "2"]
    assert daemon_of(texts[0])[:3] == ("orted", "-mca", "ess")


def test_something_else_than_the_daemon_is_not_started() -> None:
    with pytest.raises(CapacityError, match="a program other than orted"):
        daemon_of("PATH=/opt/bin:$PATH ; /opt/bin/orted")


@pytest.mark.parametrize("version", ["HYDRA build details:", "mpirun (Open MPI) 5.0.1"])
def test_another_mpirun_than_open_mpi_4_is_refused_on_several_nodes(version: str) -> None:
    with pytest.raises(CapacityError, match="supports Open MPI up to version 4") as caught:
        check_mpi(version, {"PATH": ""})
    assert caught.value.code == "no_mpirun"


def test_where_one_node_lacks_the_launcher_all_start_their_processes_themselves(tmp_path: Path) -> None:
    kind, node = Nodes(Met(said_first(launches=False)), "").agree(0, "measure")
    launch = Launch(kind="mpirun", processes=2, nodes=2, fallback="process")
    plan = plan_processes(launch, ["true"], {"PATH": "/bin"}, place_in(tmp_path), node)
    assert (kind, len(plan.processes), plan.first) == ("warmup", 2, 2)
