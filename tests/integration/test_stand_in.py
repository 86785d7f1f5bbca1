"""`prony agent start --on TARGET` with a real server, sshd, Slurm and Kubernetes: each job ends once."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lanes import only_slowly
from prony import __version__
from prony.agent.target_scanner import TargetDescription
from prony.app.targets import add_target
from prony.client import Client
from prony.instruments.device import detect
from prony.model.agent import Capabilities
from prony.model.queue import JobDetail, JobState, Submission
from prony.model.target import OptionValue, Placement, PlacePhase, Target
from prony.runner.folder import write_noun
from prony.store.folder import read_noun
from prony.store.home import Home
from prony.store.placements import Placements
from servers.binaries import AbsentError
from servers.kubernetes import kubernetes_cluster
from servers.needs import lack
from servers.slurm import Slurm, slurm_cluster
from servers.sshd import sshd_server
from servers.waiting import wait_for

_PATIENCE_S = 180.0
_RECIPE = """\
name: once
workload: {{kind: script, command: "sh -c 'echo x >> {counted}; echo speed=1'",
            metrics: [{{name: speed, pattern: "speed=([0-9]+)"}}]}}
measure: {{repeats: 1, warmup: 0}}
place: {{where: {{target: far}}}}
"""


@dataclass
class Occupied:
    """A target whose place is taken until `free` is called, how many of our jobs its queue knows, and what of ours is
    left there."""

    target: Target
    free: Callable[[], None]
    count_queued: Callable[[], int]
    list_left: Callable[[], list[str]]
    waits: str


@contextmanager
def occupied_by_ssh(place: Path, there: Path) -> Iterator[Occupied]:
    lock = place / "lock"
    with sshd_server(place / "sshd") as server, lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        options: dict[str, OptionValue] = {
            "ssh": "there", "ssh_options": tuple(server.options), "lock": str(lock), "prefix": str(there),
            "python": sys.executable,
        }  # fmt: skip
        yield Occupied(
            Target(name="far", kind="ssh", options=options),
            free=lambda: fcntl.flock(held, fcntl.LOCK_UN),
            count_queued=lambda: len(list((there / "runs").glob("*/waiting"))),
            list_left=lambda: [path.name for path in (there / "runs").iterdir()],
            waits="another run uses the machine",
        )


@contextmanager
def occupied_by_slurm(place: Path, there: Path) -> Iterator[Occupied]:
    with slurm_cluster(place / "slurm") as cluster:
        blocker = cluster.run("sbatch", "--parsable", "--exclusive", "-N2", "-o/dev/null", "--wrap=sleep 600").strip()
        wait_for(lambda: cluster.run("squeue", "-h", "-o%T", f"--jobs={blocker}").strip() == "RUNNING")
        options: dict[str, OptionValue] = {
            "setup": tuple(cluster.setup), "files_late_s": 2, "exclusive": False, "prefix": str(there),
            "python": sys.executable,
        }  # fmt: skip
        yield Occupied(
            Target(name="far", kind="slurm", options=options),
            free=lambda: (cluster.run("scancel", blocker), None)[1],
            count_queued=lambda: count_ours(cluster),
            list_left=lambda: [path.name for path in (there / "runs").iterdir()],
            waits="(Resources)",
        )


@contextmanager
def occupied_by_kubernetes(place: Path, there: Path) -> Iterator[Occupied]:
    with kubernetes_cluster(place / "k") as cluster:
        cluster.run("cordon", socket.gethostname())
        yield Occupied(
            Target(name="far", kind="kubernetes", options=cluster.options(there.parent)),
            free=lambda: (cluster.run("uncordon", socket.gethostname()), None)[1],
            count_queued=lambda: len(cluster.names("jobs")),
            list_left=cluster.names,
            waits="no suitable node is free (Unschedulable)",
        )


def count_ours(cluster: Slurm) -> int:
    return sum(name.startswith("prony-") for name in cluster.run("squeue", "-h", "-o%j").split())


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: sockets lie below."""
    made = Path(tempfile.mkdtemp(prefix="x"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(params=["ssh", *only_slowly("slurm"), pytest.param("kubernetes", marks=pytest.mark.clusters)])
def far(request: pytest.FixtureRequest, place: Path, tmp_path: Path) -> Iterator[Occupied]:
    occupied = {"ssh": occupied_by_ssh, "slurm": occupied_by_slurm, "kubernetes": occupied_by_kubernetes}[request.param]
    with ExitStack() as block:
        try:
            found = block.enter_context(occupied(place, tmp_path / "there"))
        except AbsentError as exc:
            lack("sshd" if request.param == "ssh" else request.param, str(exc))
        yield found


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    log = tmp_path / "server.log"
    words = ["server", "--port", "0", "--no-auth", "--lease-ttl", "10s"]
    with started(words, tmp_path / "server", log):
        wait_for(lambda: "serving at" in log.read_text())
        found = re.search(r"serving at (http://\S+)", log.read_text())
        assert found, log.read_text()
        yield found[1]


@contextmanager
def started(words: list[str], home: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "prony", *words],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=os.environ | {"PRONY_HOME": str(home)},
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def stand_in(url: str, home: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start one and wait until the server knows it."""
    before = log.read_text().count("enrolled") if log.exists() else 0
    words = ["agent", "start", "--on", "far", "--server", url, "--kinds", "script"]
    with started(words, home, log) as process:
        wait_for(lambda: log.read_text().count("enrolled") > before or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield process


def prepare_home(root: Path, target: Target) -> None:
    """Name the target, and have it described already: to ask takes a job there that starts every engine."""
    add_target(Home(root), "far", {"kind": target.kind, **target.options})
    (root / "agents" / "far").mkdir(parents=True)
    described = Capabilities(device=detect(), version=__version__)
    kept = TargetDescription(target=target, version=__version__, described=described)
    write_noun(root / "agents" / "far" / "description.json", kept)


def test_jobs_wait_in_a_foreign_queue_and_a_killed_stand_in_goes_on_with_them(
    far: Occupied, url: str, tmp_path: Path
) -> None:
    home, log, counted = tmp_path / "agent", tmp_path / "agent.log", tmp_path / "counted"
    prepare_home(home, far.target)
    with Client(url) as client:

        def job(number: int) -> JobDetail:
            return client.jobs.get(ids[number])

        with stand_in(url, home, log) as first:
            recipe = Submission(text=_RECIPE.format(counted=counted))
            ids = [f"{client.experiments.submit(recipe).experiment.id}-001" for _ in range(2)]
            wait_for(lambda: all(far.waits in job(one).queued.reason or "Priority" in job(one).queued.reason
                                   for one in range(2)))  # fmt: skip
            assert job(0).queued.reason.startswith("queued at far: ")
            assert {one.queued.state for one in (job(0), job(1))} == {JobState.LEASED}
            assert {one.phase for one in Placements(Home(home)).of_agents()} == {PlacePhase.QUEUED}
            first.send_signal(signal.SIGKILL)
            first.wait()
        assert far.count_queued() == 2
        if far.target.kind != "ssh":  # else it is back before that
            wait_for(lambda: {job(one).queued.state for one in range(2)} == {JobState.WAITING})  # the leases ran out
        with stand_in(url, home, log) as second:
            wait_for(lambda: {job(one).queued.state for one in range(2)} == {JobState.LEASED})
            assert [job(one).queued.attempt for one in range(2)] == [1, 1]
            client.jobs.cancel(ids[1])
            wait_for(lambda: job(1).queued.state is JobState.CANCELLED)
            assert far.count_queued() == 1
            far.free()
            wait_for(lambda: job(0).queued.state is JobState.COMPLETE)
            assert [one.state for one in job(0).attempts] == ["complete"]
            second.terminate()
            assert second.wait(_PATIENCE_S) == 0
        check_what_is_left(client, ids[0], far, tmp_path)
    assert counted.read_text() == "x\n"


def check_what_is_left(client: Client, job_id: str, far: Occupied, tmp_path: Path) -> None:
    """The result says where it ran, and nothing is left at the target or in the spool."""
    result = client.jobs.result(job_id)
    assert result.result.state == "complete"
    assert result.result.placement is not None
    assert (result.result.placement.target, result.result.placement.kind) == ("far", far.target.kind)
    log = client.jobs.logs(job_id).text
    assert b"queued at far" in log
    assert log.count(b" run-0000.out speed=1\n") == 1
    (note,) = (tmp_path / "server" / "results").rglob("placement.json")
    placement = read_noun(note, Placement)
    assert placement.target.options == {}
    if far.target.kind == "slurm":
        assert placement.handle is not None
        assert placement.handle.native_id.isdigit()
        assert placement.nodes[0] in ("n1", "n2")
    wait_for(lambda: far.list_left() == [], "nothing is left there")  # a cluster deletes a moment later
    spool = tmp_path / "agent" / "agents" / "far" / "spool"
    assert [path for path in spool.iterdir() if path.name != "refused"] == []
    assert far.count_queued() == 0
