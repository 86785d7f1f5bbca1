"""Submitters are killed at random instants: every job runs exactly once, its result comes home once, nothing is left.

`PRONY_TEST_FAULT_SEED` (1) says when each is killed. A failure names it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from prony.app.targets import add_target
from prony.model.target import OptionValue
from prony.store.home import Home
from prony.store.store import Store
from servers.binaries import AbsentError
from servers.kubernetes import kubernetes_cluster
from servers.needs import lack
from servers.slurm import slurm_cluster
from servers.sshd import sshd_server
from servers.waiting import wait_for

SEED = int(os.environ.get("PRONY_TEST_FAULT_SEED", "1"))
MOST_TRIES = 60
RUNS_IN_CLUSTER = 10  # a pod takes many times as long as a process
RECIPE = """\
name: once
workload: {{kind: script, command: "sh -c 'echo x >> {counted}; echo speed=1'",
            metrics: [{{name: speed, pattern: "speed=([0-9]+)"}}]}}
measure: {{repeats: 1, warmup: 0}}
"""


@pytest.fixture
def home(tmp_path: Path, prony_home: Path) -> Home:
    return Home(prony_home)


@pytest.fixture
def targets(tmp_path: Path, home: Home) -> Path:
    """Name this machine as a target; return its folder there."""
    common: dict[str, OptionValue] = {"prefix": str(tmp_path / "there"), "python": sys.executable}
    add_target(home, "here", common | {"kind": "local", "lock": str(tmp_path / "lock")})
    return tmp_path / "there"


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-P", "-m", "prony", *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


def kill_after(process: subprocess.Popen[bytes], wait_s: float) -> bool:
    """Kill a process after so long; False where it had ended before."""
    try:
        process.wait(timeout=wait_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def run_with_kills(target: str, count: int, kills: int, tmp_path: Path, home: Home, longest_s: float) -> None:
    """Run recipes on a target; some of those who submit and follow are killed, and others take their place."""
    chance = random.Random(SEED)
    for number in range(count):
        counted = tmp_path / f"count-{target}-{number}"
        recipe = tmp_path / f"{target}-{number}.yaml"
        recipe.write_text(RECIPE.format(counted=counted))
        process = start("run", str(recipe), "--no-report", "--on", target)
        for _ in range(kills):
            if not kill_after(process, chance.uniform(0.0, longest_s)):
                break
            process = (
                start("watch", "last")
                if is_planned(home, number + 1)
                else start("run", str(recipe), "--no-report", "--on", target)
            )
        process.wait(timeout=300)
        for _ in range(MOST_TRIES):  # a follower that was killed may have left a lock for a moment
            if is_planned(home, number + 1) and is_over(home):
                break
            start("watch", "last").wait(timeout=300)
        assert counted.read_text() == "x\n", f"seed {SEED}, run {number}"


def is_planned(home: Home, count: int) -> bool:
    with Store.open(home) as store:
        return len(store.experiments()) >= count


def is_over(home: Home) -> bool:
    with Store.open(home) as store:
        return store.experiments(1)[0].state == "complete"


def check_all_came_once(home: Home, count: int) -> None:
    with Store.open(home) as store:
        experiments = store.experiments()
        assert [one.state for one in experiments] == ["complete"] * count
        assert [len(store.records(one.id)) for one in experiments] == [1] * count


def test_a_killed_submitter_loses_nothing_and_runs_nothing_twice(targets: Path, home: Home, tmp_path: Path) -> None:
    run_with_kills("here", 1, 2, tmp_path, home, longest_s=1.5)
    check_all_came_once(home, 1)
    assert list((targets / "runs").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["here", "box", "cluster"])
def test_forty_runs_with_killed_submitters_end_once_each(
    kind: str, targets: Path, home: Home, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    common: dict[str, OptionValue] = {"prefix": str(targets), "python": sys.executable}
    place = tmp_path_factory.mktemp("k")
    with ExitStack() as block:
        try:
            if kind == "box":
                sshd = block.enter_context(sshd_server(place / "sshd"))
                add_target(home, "box", common | {"kind": "ssh", "ssh": "there", "ssh_options": tuple(sshd.options)})
            elif kind == "cluster":
                slurm = block.enter_context(slurm_cluster(place / "slurm"))
                add_target(home, "cluster", common | {"kind": "slurm", "setup": tuple(slurm.setup)})
        except AbsentError as exc:
            lack("slurm" if kind == "cluster" else "sshd", str(exc))
        run_with_kills(kind, 40, 2, tmp_path, home, longest_s=4.0)
        check_all_came_once(home, 40)
        assert list((targets / "runs").iterdir()) == []
        if kind == "cluster":
            assert slurm.run("squeue", "--noheader") == ""


@pytest.mark.clusters
def test_killed_submitters_find_their_jobs_in_a_cluster_again(
    home: Home, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ExitStack() as block:
        try:
            cluster = block.enter_context(kubernetes_cluster(tmp_path_factory.mktemp("k")))
        except AbsentError as exc:
            lack("kubernetes", str(exc))
        add_target(home, "pods", {"kind": "kubernetes", **cluster.options(tmp_path)})
        run_with_kills("pods", RUNS_IN_CLUSTER, 2, tmp_path, home, longest_s=6.0)
        check_all_came_once(home, RUNS_IN_CLUSTER)
        wait_for(lambda: cluster.names() == [], "nothing is left there")
