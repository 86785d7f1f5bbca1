"""Workers in the hands of a test: started, killed, waited for, with what they said."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_TESTS = Path(__file__).parents[1]


@dataclass
class Hand:
    """One worker's process. `open_gate` ends the wait of one that is late or held."""

    process: subprocess.Popen[bytes]
    log: Path
    gate: Path

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_said(self, pattern: str, *, within_s: float = 120.0) -> str:
        """Wait until it has said something like this; return what."""
        deadline = time.monotonic() + within_s
        while (found := re.search(pattern, self.said())) is None:
            assert time.monotonic() < deadline, f"waited {within_s:g} s for {pattern!r} in:\n{self.said()[-3000:]}"
            time.sleep(0.02)
        return found[0]

    def worker_id(self) -> str:
        return self.wait_said(r"worker-[0-9a-f]{12}")

    def open_gate(self) -> None:
        self.gate.touch()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(sent)
        return self.process.wait(120)

    def ended(self, *, within_s: float = 120.0) -> int:
        return self.process.wait(within_s)


@dataclass
class Crew:
    """All workers of one test."""

    folder: Path
    host: str
    redis_url: str
    hands: list[Hand] = field(default_factory=list)
    started: int = 0

    def start(self, fault: str = "", *, mode: str = "recorded", options: Sequence[str] = ()) -> Hand:
        there = urlsplit(self.redis_url)
        self.started += 1
        number = self.started
        log, gate = self.folder / f"dumont-{number}.log", self.folder / f"gate-{number}"
        command = [sys.executable, "-m", "dumont", "start", "--host", self.host]
        command += ["--redis-host", str(there.hostname), "--redis-port", str(there.port)]
        command += ["--mode", mode, "--fault", fault, "--gate", str(gate)]
        quick = ["--heartbeat", "0.2", "--idle", "0.05"]
        path = os.pathsep.join(filter(None, [str(_TESTS), os.environ.get("PYTHONPATH")]))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *quick, *options],
                env=os.environ | {"PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        hand = Hand(process, log, gate)
        self.hands.append(hand)
        return hand


@contextmanager
def crew(folder: Path, *, host: str, redis_url: str) -> Iterator[Crew]:
    """Have workers for as long as the block runs; none of them outlives it."""
    made = Crew(folder, host, redis_url)
    try:
        yield made
    finally:
        for hand in made.hands:
            hand.kill()
