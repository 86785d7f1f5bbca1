"""deploy/compose.yaml, started for real by podman: a recipe is submitted through the pages and finishes there.

No registry is reached: server and agent are built from the wheel of this repository, and stand-ins of the other images
are made of this machine's PostgreSQL and Prometheus. Compose's variables name them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from playwright.sync_api import expect

from prony.client import Client
from servers import images
from servers.binaries import AbsentError
from servers.needs import lack
from servers.podman import Podman, podman_engine
from servers.ports import free_port
from servers.waiting import wait_for
from servers.wheels import build_packages, copy_checkout, fetch_wheels

from .conftest import Opened

pytestmark = pytest.mark.slow
_BUILD_S, _START_S = 1500, 180
RECIPE = """\
name: composed
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime, threads: 1}
measure: {runs: 5, repeats: 2, warmup: 1}
"""


@dataclass(frozen=True)
class Composed:
    """The services of compose.yaml, and the environment in which compose is asked about them."""

    podman: Podman
    file: Path
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.environment['SERVER_PORT']}"

    def compose(self, *words: str, within_s: float = _START_S) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "podman_compose", "--file", self.file, *words], env=self.environment,
            capture_output=True, text=True, check=False, timeout=within_s, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def start(self, *services: str) -> None:
        """Start services after each other, each when the one before is healthy or over, as `depends_on` says.

        Podman runs health checks by systemd, which a container or a small machine lacks, and older ones cannot wait for
        them; so they are asked here.
        """
        described = yaml.safe_load(self.file.read_text())["services"]
        for name in services:
            self.compose("up", "--detach", "--no-build", "--no-deps", name)
            if described[name].get("restart") == "no":
                assert self.podman.run("wait", f"prony_{name}_1") == "0", self.read_log(name)
            elif "healthcheck" in described[name]:
                wait_for(lambda name=name: self.is_healthy(name), f"{name} to be healthy")  # type: ignore[misc]

    def is_healthy(self, name: str) -> bool:
        said = self.podman.run("inspect", f"prony_{name}_1", "--format", "{{.State.Status}}")
        assert said == "running", self.read_log(name)
        words = ["podman", "healthcheck", "run", f"prony_{name}_1"]
        return subprocess.run(words, env=self.environment, capture_output=True, check=False).returncode == 0

    def read_log(self, name: str) -> str:
        words = ["podman", "logs", f"prony_{name}_1"]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr)[-3000:]

    def ask_prometheus(self, query: str) -> list[dict[str, Any]]:
        address = f"http://127.0.0.1:{self.environment['PROMETHEUS_PORT']}/api/v1/query"
        return list(httpx.get(address, params={"query": query}, timeout=60).raise_for_status().json()["data"]["result"])


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    if find_spec("podman_compose") is None:
        lack("podman-compose", "podman-compose is not installed")
    if not shutil.which("catatonit") and not Path("/usr/libexec/podman/catatonit").exists():
        lack("catatonit", "podman has no catatonit, which `init: true` needs")
    folder = tmp_path_factory.mktemp("composed")
    try:
        with podman_engine() as podman:
            images.make_images(podman, folder)
            yield from _serve(podman, folder)
    except AbsentError as exc:
        lack("podman", str(exc))


def _serve(podman: Podman, folder: Path) -> Iterator[Composed]:
    checkout = copy_checkout(folder / "checkout")
    (checkout / "dist").mkdir()
    fetch_wheels(build_packages(checkout, folder), "server,postgres,redis,onnx", checkout / "dist")
    (checkout / "deploy/prony.env").write_text("PRONY_AGENT__LOG_FORMAT=console\nPRONY_SERVER__LOG_LEVEL=debug\n")
    variables = {
        "PYTHON_IMAGE": images.PYTHON, "POSTGRES_IMAGE": images.POSTGRES, "PROMETHEUS_IMAGE": images.PROMETHEUS,
        "ENGINES": "onnx", "PIP_NO_INDEX": "1", "SERVER_PORT": str(free_port()), "PROMETHEUS_PORT": str(free_port()),
    }  # fmt: skip
    made = Composed(podman, checkout / "deploy/compose.yaml", dict(os.environ) | dict(podman.environment) | variables)
    with stopped(made):
        made.compose("--podman-build-args=--isolation=chroot --format=docker", "build", within_s=_BUILD_S)
        made.start("database", "server", "tokens", "agent", "prometheus")
        yield made


@contextmanager
def stopped(made: Composed) -> Iterator[None]:
    """Leave neither networks nor volumes."""
    try:
        yield
    finally:
        made.compose("down", "--volumes")


def test_a_recipe_is_submitted_through_the_pages_of_compose_and_finishes(composed: Composed, opened: Opened) -> None:
    page = opened(composed.url, logs_in=False)
    link = composed.compose("exec", "-T", "server", "prony", "server", "link").strip()
    assert link.startswith(f"{composed.url}/login?code=")
    page.goto(link)
    page.goto("/run")
    page.get_by_role("textbox", name="Recipe").click()
    page.keyboard.insert_text(RECIPE)
    page.get_by_role("button", name="Submit 1 job").click()
    page.wait_for_url("**/experiments/*")
    expect(page.get_by_text("complete").first).to_be_visible()
    expect(page.get_by_text("p50").first).to_be_visible()
    wait_for(lambda: bool(composed.ask_prometheus('prony_jobs{state="complete"} > 0')), "Prometheus to read of the job")


def test_prometheus_finds_the_server_and_its_agent(composed: Composed) -> None:
    def up() -> dict[str, str]:
        return {one["metric"]["job"]: one["value"][1] for one in composed.ask_prometheus("up")}

    wait_for(lambda: up() == {"prony-server": "1", "prony-agents": "1"}, "Prometheus to read both")


def test_containers_run_as_a_user_with_a_root_that_they_cannot_change(composed: Composed) -> None:
    for name in ("server", "agent"):
        write = "id -u; touch /opt/prony/x 2>/dev/null || echo refused; touch /tmp/x /var/lib/prony/x"
        assert composed.compose("exec", "-T", name, "sh", "-c", write).split() == ["10001", "refused"]


def test_what_was_measured_and_who_measured_it_outlive_the_containers(composed: Composed) -> None:
    def seen() -> tuple[list[str], list[str]]:
        token = composed.podman.run("exec", "prony_server_1", "prony", "tokens", "add", "test", "--role", "viewer")
        with Client(composed.url, token) as client:
            made = [one.experiment.id for one in client.experiments.page().items]
            return made, [f"{one.id} {one.name}" for one in client.agents.page().items]

    before = seen()
    assert all(before)
    composed.compose("down")
    composed.start("database", "server", "tokens", "agent", "prometheus")
    assert seen() == before


def test_the_settings_of_the_environment_file_reach_server_and_agent(composed: Composed) -> None:
    for name in ("server", "agent"):
        assert "PRONY_SERVER__LOG_LEVEL=debug" in composed.compose("exec", "-T", name, "env").splitlines()
    # What compose.yaml sets itself goes first.
    assert "PRONY_AGENT__LOG_FORMAT=json" in composed.compose("exec", "-T", "agent", "env").splitlines()
