"""Test lines for wires without an event loop: one in memory, one on a blocking socket."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping
from typing import Any

from prony.load.wire import Wire
from prony.plugins.drivers.sockets import connect
from prony.ports.driver import Cause, Endpoint, Prepared


class MemoryLine:
    """Remembers what a wire tells, in order: `("done", status, cause)`, `("failed", cause)`, `("ready",)`."""

    keeps = False
    status = 0
    reads = 0

    def __init__(self, wire: type[Wire], options: Mapping[str, Any]) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.written: list[bytes] = []
        self.wire = wire(self, options)  # type: ignore[arg-type]

    def write(self, content: bytes) -> None:
        self.written.append(content)

    def ready(self) -> None:
        self.told.append(("ready",))

    def done(self, status: int, cause: int = 0) -> None:
        self.told.append(("done", status, Cause(cause)))

    def fail(self, cause: int) -> None:
        self.told.append(("failed", Cause(cause)))

    def fed(self, data: bytes, cuts: list[int]) -> list[tuple[Any, ...]]:
        """Give the wire bytes in pieces; return what it has told since the last time."""
        self.told.clear()
        edges = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(data)), len(data)]
        for begin, end in itertools.pairwise(edges):
            self.reads += 1
            self.wire.data_received(data[begin:end])
        return list(self.told)


class SocketLine(MemoryLine):
    """A real connection that waits for each answer."""

    def __init__(self, endpoint: Endpoint, prepared: Prepared) -> None:
        module, _, name = prepared.wire.partition(":")
        self._socket = connect(endpoint, timeout_s=120)
        super().__init__(getattr(importlib.import_module(module), name), prepared.wire_options)
        self.wire.connection_made()
        self._wait()
        assert self.told == [("ready",)], self.told

    def write(self, content: bytes) -> None:
        self._socket.sendall(content)

    def ask(self, content: bytes) -> tuple[int, Cause]:
        """Send a request; return its status and cause."""
        self.told.clear()
        self.wire.send(content)
        self._wait()
        ((kind, *rest),) = self.told
        return (rest[0], rest[1]) if kind == "done" else (0, rest[0])

    def close(self) -> None:
        self._socket.close()

    def _wait(self) -> None:
        while not self.told:
            data = self._socket.recv(1 << 16)
            if not data:
                self.fail(self.wire.eof_received())
                return
            self.wire.data_received(data)
