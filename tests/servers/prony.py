"""Start a real `prony server` in a process of its own, with its owner's token and its link."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from servers.process import DieWithParent

_ENDED_S = 60


@dataclass(frozen=True)
class Served:
    """`said` is what the server printed at its start."""

    url: str
    home: Path
    said: str
    process: subprocess.Popen[str]

    @property
    def token(self) -> str:
        return (self.home / "owner-token").read_text().strip()

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def link(self) -> str:
        """The link that the server printed."""
        found = re.search(r"https?://\S+/login\?code=\S+", self.said)
        assert found is not None, self.said
        return found[0]

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.bearer, trust_env=False, timeout=60)


@contextmanager
def prony_serving(home: Path, *options: str) -> Iterator[Served]:
    """Run a server on loopback until the block ends."""
    home.mkdir(parents=True, exist_ok=True)
    log = home.with_suffix(".log")
    command = [sys.executable, "-m", "prony", "server", "--port", "0", *options]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, env=os.environ | {"PRONY_HOME": str(home)}, stdout=subprocess.PIPE, stderr=errors, text=True,
            preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - it makes one system call
        )  # fmt: skip
    assert process.stdout is not None
    try:
        said = _start(process, log)
        found = re.match(r"serving at (http://\S+)", said)
        assert found is not None, said + log.read_text()
        yield Served(found[1], home, said, process)
    finally:
        process.terminate()
        process.wait(_ENDED_S)
        process.stdout.close()


def _start(process: subprocess.Popen[str], log: Path) -> str:
    """Return what the server prints until it has said who may do what."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "prints another" in line or "--no-auth:" in line:
            return said
    raise AssertionError(f"prony server did not start: {said}{log.read_text()}")
