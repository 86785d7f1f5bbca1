"""The demonstration of `prony server --demo`: a home of its own, recorded experiments and an agent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from prony.cli.output import print_text
from prony.runner.services.process_tree import die_with_parent
from prony.store.home import VARIABLE, Home

AGENT_NAME = "demo"
_LEAVE_S = 3.0  # the server's own end is forced some seconds after its signal


@contextmanager
def open_demo_home(named: Path | None) -> Iterator[Home]:
    """Use a home of the demonstration's own, filled with recorded experiments; one without a name is deleted."""
    place = Home(named.absolute() if named else Path(tempfile.mkdtemp(prefix="prony-demo-")))
    earlier = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(place.root)
    try:
        print_text(f"demo: everything is in {place.root} ({'kept' if named else 'deleted at the end'})")
        _fill(place.create())
        yield place
    finally:
        _restore(earlier)
        if named is None:
            shutil.rmtree(place.root, ignore_errors=True)


class DemoAgent:
    """An agent in a process of its own, which leaves when this one is asked to end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, url: str, token_file: Path | None) -> None:
        """Offer this machine to the server that runs in this process; where it asks for a token, no other counts."""
        command = [
            sys.executable, "-P", "-m", "prony", "agent", "start", "--server", url, "--name", AGENT_NAME,
            *(("--token-file", str(token_file)) if token_file else ()),
            "--kinds", "model,service,script", "--drain-timeout", "1s", "--log-level", "error",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - it makes one system call
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            self._leave_before(number)

    def stop(self) -> None:
        """Wait until it has left, and end it where it does not."""
        if self._process is None:
            return
        try:
            self._process.terminate()
            self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _leave_before(self, number: int) -> None:
        """Ask the agent to leave before the server is asked to end: it says goodbye there."""
        serving = signal.getsignal(number)

        def end(given: int, frame: FrameType | None) -> None:
            if self._process is not None:
                self._process.terminate()
            if callable(serving):
                serving(given, frame)

        signal.signal(number, end)


def _fill(home: Home) -> None:
    from prony.app.recordings import import_recordings

    count = import_recordings(home, lambda one: print_text(f"  recorded experiment {one.id}: {one.name}"))
    print_text(f"demo: {count} recorded experiments; the agent {AGENT_NAME!r} of this machine runs what you submit")
    sys.stdout.flush()


def _restore(earlier: str | None) -> None:
    if earlier is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = earlier
