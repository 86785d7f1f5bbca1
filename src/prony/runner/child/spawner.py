"""Keep an engine imported, and fork a fresh child from it for each order.

A fork hands on what was written and leaves out what was only read from files. The child would fetch the engine's code
page by page, and its load would be charged with that time and that memory. So the spawner's resident pages of engine
code are mapped into the child.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import mmap
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

import numpy as np

from prony.ports.engine import Engine, find_unsupported_reason
from prony.runner.child.parent_end import can_fork, die_with_parent
from prony.runner.child.repetition import perform
from prony.runner.child.wire import ChildOrder, Message, MessageWire, private_wire

_POPULATE_READ = 22  # Linux 5.14; an older kernel refuses it, and the child goes without
_ENTRY_BYTES = 8
# What the runner says to a child that is ready: begin, or go on warming up.
_ANSWERS = {"go": b"g", "more": b"m"}

Stretch = tuple[int, int]  # address and length


def _resident_stretches() -> list[Stretch]:
    """Return the parts of mapped files that are resident in this process; none where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_bytes().decode(errors="replace").splitlines()
        with FileIO("/proc/self/pagemap") as pagemap:
            return [stretch for line in lines for stretch in _of_mapping(line, pagemap)]
    except OSError:
        return []


def _of_mapping(line: str, pagemap: FileIO) -> Iterator[Stretch]:
    words = line.split(maxsplit=5)
    if len(words) < 6 or not words[5].startswith("/") or words[5].startswith("/dev/"):
        return
    begin, end = (int(word, 16) for word in words[0].split("-"))
    pagemap.seek(begin // mmap.PAGESIZE * _ENTRY_BYTES)
    entries = np.frombuffer(pagemap.read((end - begin) // mmap.PAGESIZE * _ENTRY_BYTES), np.uint64)
    is_here = (entries >> np.uint64(63)).astype(np.int8)
    edges = np.flatnonzero(np.diff(is_here, prepend=np.int8(0), append=np.int8(0)))
    for first, beyond in edges.reshape(-1, 2).tolist():
        yield begin + first * mmap.PAGESIZE, (beyond - first) * mmap.PAGESIZE


def _populate(stretches: list[Stretch]) -> None:
    """Map these pages here too; what cannot be mapped is left for later."""
    if not stretches:
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for address, length in stretches:
        advise(address, length, _POPULATE_READ)


def main(arguments: list[str]) -> int:
    wire = private_wire()
    die_with_parent()
    engine = _import_engine(arguments[0], wire)
    if engine is None:
        return 1
    gc.collect()
    gc.freeze()  # what was imported is shared with every child; collecting there would copy its pages
    Spawner(engine, wire, forks=can_fork()).serve()
    return 0


def _import_engine(target: str, wire: MessageWire) -> Engine | None:
    module, _, name = target.partition(":")
    begin_ns = time.perf_counter_ns()
    try:
        engine: Engine = getattr(importlib.import_module(module), name)()
        reason = find_unsupported_reason(engine)
        if reason is not None:
            wire.send("unsupported", reason=reason)
            return None
        version = engine.preload()
    except ImportError as exc:
        wire.send("missing", reason=str(exc), module=exc.name or "")
        return None
    except Exception as exc:  # noqa: BLE001 - the edge of this process: whatever a vendor's import raises is reported
        wire.send("broken", reason=f"{type(exc).__name__}: {exc}", detail=traceback.format_exc(limit=-3))
        return None
    wire.send(
        "hello",
        version=version,
        import_ns=time.perf_counter_ns() - begin_ns,
        python=sys.executable,
        python_version=sys.version.split()[0],
        threads=_thread_count(),
    )
    return engine


def _thread_count() -> int:
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


class Spawner:
    """Serves one order at a time; relays the word to go; ends when the runner's side of the wire closes."""

    def __init__(self, engine: Engine, wire: MessageWire, *, forks: bool = True) -> None:
        self.engine = engine
        self.forks = forks
        self.wire = wire
        self.imported = _resident_stretches()
        self.child: int | None = None
        self.gate: int | None = None

    def serve(self) -> None:
        if not self.forks:
            return self._serve_here()
        wakeup_read, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select([self.wire.read_fd, wakeup_read], [], [])
            if wakeup_read in ready:
                os.read(wakeup_read, 4096)
                self._reap()
            if self.wire.read_fd in ready:
                block = self.wire.receive()
                if block is None:
                    return self._end()
                for message in block:
                    self._obey(message)

    def _serve_here(self) -> None:
        """Where nothing forks this process is itself the fresh one: it takes one order and ends."""
        block = self.wire.receive()
        if block:
            read_fd, write_fd = os.pipe()
            os.write(write_fd, b"g")
            self.wire.send("forked", pid=os.getpid())
            status = perform(self.engine, ChildOrder.of(block[0]["order"]), self.wire, gate=read_fd)
            self.wire.send("exit", pid=os.getpid(), status=status << 8)

    def _obey(self, message: Message) -> None:
        if message["event"] in _ANSWERS and self.gate is not None:
            with suppress(BrokenPipeError):  # it ended while it waited; how, is told when it is reaped
                os.write(self.gate, _ANSWERS[message["event"]])
        elif message["event"] == "order":
            self._fork(ChildOrder.of(message["order"]))

    def _fork(self, order: ChildOrder) -> None:
        gate_read, gate_write = os.pipe()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            os.close(gate_write)
            self._be_child(order, gate_read, parent)
        os.close(gate_read)
        self.child, self.gate = pid, gate_write
        self.wire.send("forked", pid=pid)

    def _be_child(self, order: ChildOrder, gate: int, parent: int) -> None:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)  # so that the runner can end this child and whatever the engine started
            die_with_parent(parent=parent)
            os.close(self.wire.read_fd)
            _populate(self.imported)
            status = perform(self.engine, order, self.wire, gate=gate)
        finally:
            os._exit(status)  # no atexit of the spawner, no destructors of a vendor after the answer is out

    def _reap(self) -> None:
        while self.child is not None:
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid == 0:
                return
            self.child = None
            _kill_group(pid)  # whatever the engine started and left behind
            if self.gate is not None:
                os.close(self.gate)
                self.gate = None
            self.wire.send("exit", pid=pid, status=status)

    def _end(self) -> None:
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
            _kill_group(self.child)
            os.waitpid(self.child, 0)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
