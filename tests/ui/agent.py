"""A real agent in a process of its own, for the time of a block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
