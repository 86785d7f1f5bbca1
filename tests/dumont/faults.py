"""Faults of a Dumont worker, and when each of them strikes."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

DEATHS = ("die-after-pop", "die-after-fetch", "die-before-result", "die-after-result")
# As urllib says it where a model's server is away: word for word the same each time.
NO_DOWNLOAD = "Failed to download model: <urlopen error [Errno 111] Connection refused>"
NAMES = (*DEATHS, "hang", "late", "held", "fail", "no-download", "lost", "twice", "unknown", "malformed")


@dataclass
class Fault:
    """`times`: how many jobs it strikes, the first ones. `gate` is the file that ends a wait."""

    name: str = ""
    times: int = 1_000_000
    gate: Path = Path()
    is_mute: bool = field(default=False, init=False)

    @classmethod
    def read(cls, text: str, gate: Path) -> Fault:
        """Read `name` or `name:times`."""
        name, _, times = text.partition(":")
        if name and name not in NAMES:
            raise SystemExit(f"no fault {name!r}; known: {', '.join(NAMES)}")
        return cls(name, int(times or 1_000_000), gate)

    def job(self) -> None:
        """A job was popped."""
        self.times -= 1

    def strikes(self, name: str) -> bool:
        return self.name == name and self.times >= 0

    def at(self, moment: str) -> None:
        """Be killed here where it is so wanted: nothing is cleaned up."""
        if self.strikes(f"die-{moment}"):
            os.kill(os.getpid(), signal.SIGKILL)

    def during_the_job(self) -> None:
        """Hang for ever; be cut off, or just be slow, until the gate opens; fail."""
        while self.strikes("hang"):
            time.sleep(3600)
        self.is_mute = self.strikes("late")
        while (self.strikes("late") or self.strikes("held")) and not self.gate.exists():
            time.sleep(0.01)
        self.is_mute = False
        if self.strikes("fail"):
            raise RuntimeError("Benchmark task failed: it was told to")
        if self.strikes("no-download"):
            raise OSError(NO_DOWNLOAD)
