"""Messages between the runner and the engine's process: JSON lines on descriptors that nobody else writes to."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
PHASE_BYTES = 16


class MessageWire:
    """One end of the conversation."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self._pending = b""

    def send(self, event: str, **body: Any) -> None:
        line = json.dumps({"event": event, **body}).encode() + b"\n"
        while line:
            line = line[os.write(self.write_fd, line) :]

    def receive(self) -> list[Message] | None:
        """Return the whole lines that are there now, after one read; None when the other side has gone."""
        block = os.read(self.read_fd, 65536)
        if not block:
            return None
        *lines, self._pending = (self._pending + block).split(b"\n")
        return [json.loads(line) for line in lines]


def private_wire() -> MessageWire:
    """Take over standard input and output: keep private copies, and send prints of the engine to the log."""
    wire = MessageWire(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return wire


@dataclass(frozen=True)
class ChildOrder:
    """What one child has to do. Everything is a plain value, because it travels as JSON."""

    op: str  # measure | load | signature | outputs | probe | cards | tests
    model: str = ""
    suite: str = ""  # of `tests`: MODULE:CLASS of what is run instead of a model
    unit: str = "cpu"
    threads: int = 1
    precision: str = "default"
    batch_size: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    seed: int = 0
    runs: int = 1
    most_runs: int = 0
    warmup: int | None = None  # None: until the last medians agree
    max_time_ns: int = 60 * 10**9
    ci: float | None = None
    inputs_at: str = "device"
    outputs_at: str = "device"
    sustained_ns: int = 0  # how long a device works back to back, at least, after the measured calls
    profile: bool = False
    phase: str = ""  # file that always names the phase this child is in: a write there wakes nobody up
    samples: str = ""  # file for the samples, as native int64
    outputs: str = ""  # file for the outputs, as .npz

    @classmethod
    def of(cls, message: Message) -> ChildOrder:
        known = {name: message[name] for name in cls.__dataclass_fields__ if name in message}
        return cls(**known)
