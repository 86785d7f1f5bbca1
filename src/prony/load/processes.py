"""Client processes before they have an order: started ahead of their load, they import while it is still prepared.

Only the standard library is imported here, for whoever starts one early has imported little else yet.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from typing import IO, Self

_COMMAND = (sys.executable, "-P", "-m", "prony.load.client")
# A client does no linear algebra: threads that wait for some would only cost memory.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
_GRACE_S = 20.0
_LOG_TAIL = 2000


class ClientProcess:
    """One process as whoever started it sees it. What it hears first is the path of its order."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile(prefix="prony-client-")  # noqa: SIM115 - `end` closes it
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | _ENVIRONMENT,
        )
        self.pid = self._process.pid
        os.set_blocking(self.output, False)

    @property
    def output(self) -> int:
        return _pipe(self._process.stdout).fileno()

    def say(self, line: str) -> None:
        """Tell it something; that it is gone shows on its output, where its last words may still be waiting."""
        with contextlib.suppress(BrokenPipeError):
            os.write(_pipe(self._process.stdin).fileno(), os.fsencode(line) + b"\n")

    def code(self) -> int:
        """Return how it ended, which it must be about to do."""
        return self._process.wait(_GRACE_S)

    def last_words(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()[-_LOG_TAIL:]

    def end(self, *, at_once: bool = False) -> None:
        """Close its input, which ends it, and wait for that; where it has nothing to lose, at once."""
        for stream in (self._process.stdin, self._process.stdout):
            _pipe(stream).close()
        if at_once:
            self._process.kill()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class ClientProcesses:
    """The processes that wait for an order; leaving the block ends them."""

    def __init__(self, ahead: int = 0) -> None:
        self._waiting = [ClientProcess() for _ in range(ahead)]

    def take(self) -> ClientProcess:
        """Return one that waits already, or else a new one; whoever takes it ends it."""
        return self._waiting.pop() if self._waiting else ClientProcess()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._waiting:
            self._waiting.pop().end(at_once=True)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
