"""A real agent in a process of its own, for the time of a block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from servers.process import DieWithParent

from .conftest import owner_token


@contextmanager
def prony_agent(home: Path, url: str, *options: str, is_at_home: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Offer this machine to a server while the block runs; whoever tests a loss may kill it before.

    `is_at_home`: the home is the server's own too, where the agent finds the owner's token by itself.
    """
    command = [sys.executable, "-m", "prony", "agent", "start", "--server", url, "--drain-timeout", "1s", *options]
    home.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"PRONY_HOME": str(home)} | ({} if is_at_home else {"PRONY_TOKEN": owner_token(url)})
    with (home / "agent-output.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=DieWithParent(signal.SIGTERM),  # noqa: PLW1509 - it makes one system call
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def enrol_device(client: httpx.Client, agent_id: str) -> None:
    """Have an agent of two cores and a GPU that told twice how it does."""
    cpu, gpu = {"architecture": "x86_64", "logical_cores": 2}, {"index": 0, "name": "H200", "vendor": "nvidia"}
    hardware = {"cpu": cpu, "memory_mib": 8192, "gpus": [gpu]}
    software = {"os": "Linux", "kernel": "6.1", "python": "3.11", "prony": "1"}
    device = {"name": "rack", "hardware": hardware, "software": software, "hardware_id": "h", "software_id": "s"}
    enrolment = {"id": agent_id, "name": agent_id, "device_key": "d", "incarnation": "i1",
                 "capabilities": {"device": device, "facts": {"engine": "onnxruntime"}}}  # fmt: skip
    client.post("/agents", json=enrolment).raise_for_status()
    for busy_s, available_mib, power_w in ((1.0, 6000.0, 80.0), (1.5, 2048.0, 655.0)):
        readings = {"cpu_busy_s_total": busy_s, "memory_available_mib": available_mib, "gpu0_power_w": power_w}
        beat = {"incarnation": "i1", "readings": readings}
        client.post(f"/agents/{agent_id}/heartbeat", json=beat).raise_for_status()
