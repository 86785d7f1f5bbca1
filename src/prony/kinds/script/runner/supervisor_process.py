"""Keep the process that starts scripts: begin it once, give it one order after another, replace it when it is gone."""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from prony.errors import MeasurementError
from prony.runner.services import process_tree

_MODULE = ("-P", "-m", "prony.kinds.script.runner.script_supervisor")
_READY_S = 120.0
_END_S = 120.0  # longer than the supervisor needs at its worst


class SupervisorProcess:
    """The runner's side of `script_supervisor`. Leaving the block ends it, and whatever it still executes."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""
        self._heard = b""
        self._is_gone = False
        self._sessions: Sequence[int] = ()
        self.pid = 0  # of the process whose children the scripts are, once it is ready

    def __enter__(self) -> SupervisorProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Start it, unless it runs; it gets ready while the runner does other things."""
        if self._process is not None and not self._is_gone and self._process.poll() is None:
            return
        self.close()
        self._token, self._heard, self._sessions, self.pid = secrets.token_hex(16), b"", (), 0
        self._is_gone = False
        command = [sys.executable, *_MODULE, str(os.getpid()), self._token]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        )

    def wait_ready(self) -> None:
        """Return when it waits for an order.

        Raises:
            MeasurementError: It ended before.
        """
        self.begin()
        deadline = time.monotonic() + _READY_S
        while not self.pid and time.monotonic() < deadline:
            messages = self.listen(_READY_S)
            if messages is None:
                break
            self.pid = next((int(one["pid"]) for one in messages if one["event"] == "ready"), 0)
        if not self.pid:
            self.close()
            raise MeasurementError("the process that supervises scripts did not start", hint="run prony doctor")

    def order(self, processes: Sequence[dict[str, Any]], clear: Sequence[Sequence[str]] = ()) -> None:
        """Have it execute these processes, together; `clear` are run where it has to end them."""
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # then it was killed, and that is heard
            order = {"processes": list(processes), "clear": [list(command) for command in clear]}
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def listen(self, within_s: float) -> list[dict[str, Any]] | None:
        """Return what it tells, which may be nothing so far; None when there is nothing more to hear."""
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        ready, _, _ = select.select([pipe], [], [], within_s)
        if not ready:
            return []
        piece = os.read(pipe, 2**16)
        if not piece:
            self._is_gone = True
            return None
        *lines, self._heard = (self._heard + piece).split(b"\n")
        messages = [json.loads(line) for line in lines]
        self._sessions = next((one["pids"] for one in messages if one["event"] == "started"), self._sessions)
        return messages

    def stop(self) -> None:
        """Have it end what it executes, tell the end, and go."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def close(self) -> None:
        """End it, and what it executes; where it was killed, what it had started is ended from here."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode != 0:
            process_tree.kill_all(self._orphans, within_s=_END_S)

    def _orphans(self) -> set[int]:
        return process_tree.carrying(self._token).union(*(process_tree.in_session(one) for one in self._sessions))
