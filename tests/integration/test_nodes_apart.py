"""Two nodes with networks of their own: a service on one is loaded from the other, by an address that both reach."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prony.plugins.services.redis import Redis
from prony.recipe import loads
from prony.runner.job_folder import write_job_folder
from servers.needs import lack

RECIPE = """\
name: apart
workload: {kind: service, service: redis}
load: {closed: {concurrency: 2}, duration: 500ms, repeats: 1, clients: {agents: 1, on: elsewhere}}
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=60)


@pytest.fixture
def networks() -> Iterator[tuple[str, str]]:
    """Return the names of two network namespaces with a wire between them."""
    if shutil.which("ip") is None or os.getuid() != 0:
        lack("netns", "network namespaces need root and the program ip: apt-get install iproute2")
    name = secrets.token_hex(3)
    both = (f"prony-{name}-0", f"prony-{name}-1")
    with ExitStack() as block:
        try:
            for one in both:
                run("ip", "netns", "add", one)
                block.callback(run, "ip", "netns", "del", one)
            run(
                "ip",
                "link",
                "add",
                f"p{name}0",
                "netns",
                both[0],
                "type",
                "veth",
                "peer",
                f"p{name}1",
                "netns",
                both[1],
            )
            for number, one in enumerate(both):
                run("ip", "-n", one, "addr", "add", f"198.18.7.{number + 1}/24", "dev", f"p{name}{number}")
                run("ip", "-n", one, "link", "set", f"p{name}{number}", "up")
                run("ip", "-n", one, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as exc:
            lack("netns", f"no network namespaces here: {exc.stderr.decode().strip()}")
        yield both


@pytest.mark.slow
def test_a_service_is_loaded_by_a_node_that_cannot_reach_its_loopback(
    networks: tuple[str, str], tmp_path: Path, prony_home: Path
) -> None:
    if reason := Redis().available(Redis.Options()):
        lack("redis", reason)
    folder = tmp_path / "sent"
    jobs = loads(RECIPE).jobs("exp")
    write_job_folder(folder, jobs, jobs)
    command = [sys.executable, "-P", "-m", "prony", "exec", "--folder", str(folder), "--part"]
    nodes = [
        subprocess.Popen(["ip", "netns", "exec", network, *command, f"{index}/2"], stderr=subprocess.PIPE, text=True)
        for index, network in enumerate(networks)
    ]
    said = [node.communicate(timeout=180)[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    result = json.loads((folder / "result" / "exp-001" / "result.json").read_text())
    assert (result["state"], result["failure"]) == ("complete", None)
    (run_,) = result["repetitions"]
    assert run_["client"]["members"][0]["requests"] > 0
    assert run_["client"]["causes"].keys() == {"ok"}
