"""A real sshd, a real Slurm and a real Kubernetes for the tests of executors, and payloads for them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prony.model.target import Payload
from prony.recipe import loads
from prony.runner.job_folder import write_job_folder
from servers.binaries import AbsentError
from servers.kubernetes import Kubernetes, kubernetes_cluster
from servers.needs import lack
from servers.slurm import Slurm, slurm_cluster
from servers.sshd import Sshd, sshd_server
from servers.waiting import wait_for

_SHORT = """\
name: short
workload: {{kind: script, command: "{command}", metrics: [{{name: speed, pattern: "speed=([0-9]+)"}}]}}
measure: {{repeats: {repeats}, warmup: 0}}
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A short path: sockets lie below, and below a long one they would be in a folder that others use too."""
    made = Path(tempfile.mkdtemp(prefix="x"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def sshd(place: Path) -> Iterator[Sshd]:
    with ExitStack() as block:
        try:
            server = block.enter_context(sshd_server(place / "sshd"))
        except AbsentError as exc:
            lack("sshd", str(exc))
        yield server


@pytest.fixture(scope="module")
def slurm(place: Path) -> Iterator[Slurm]:
    with ExitStack() as block:
        try:
            cluster = block.enter_context(slurm_cluster(place / "slurm"))
        except AbsentError as exc:
            lack("slurm", str(exc))
        yield cluster


@pytest.fixture(scope="session")
def kubernetes_server() -> Iterator[Kubernetes]:
    """One for all tests: it takes longer to start than any of them."""
    with ExitStack() as block:
        folder = Path(block.enter_context(tempfile.TemporaryDirectory(prefix="k", ignore_cleanup_errors=True)))
        try:
            cluster = block.enter_context(kubernetes_cluster(folder))
        except AbsentError as exc:
            lack("kubernetes", str(exc))
        yield cluster


@pytest.fixture
def kubernetes(kubernetes_server: Kubernetes) -> Iterator[Kubernetes]:
    """A cluster in which nothing is left of another test."""
    yield kubernetes_server
    if kubernetes_server.names():
        kubernetes_server.run("delete", "jobs,pods", "--all", "--wait=false", "--grace-period=1")
        wait_for(lambda: kubernetes_server.names() == [], "nothing is left there")


@pytest.fixture
def payload(tmp_path: Path) -> Callable[..., Payload]:
    """Return a maker of payloads of one script job each."""

    def make(key: str, command: str = "echo speed=42", repeats: int = 1) -> Payload:
        folder = tmp_path / f"{key}.out"
        jobs = loads(_SHORT.format(command=command, repeats=repeats)).jobs("exp")
        write_job_folder(folder, jobs, jobs)
        return Payload(key=key, folder=str(folder))

    return make
