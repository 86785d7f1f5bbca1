"""Convert the kernel's receive timestamps to the `perf_counter_ns` time axis.

Linux tells with each read when its bytes reached the machine, on the clock of the day. Both clocks are read together,
again and again while nothing else is to do, so that a clock that somebody sets does not move any stamp by much.
"""

from __future__ import annotations

import socket
import struct
import sys
from time import perf_counter_ns, time_ns

# SO_TIMESTAMPNS of Linux; the name is not in every Python's socket module.
_SO_TIMESTAMPNS = 35
ROOM = socket.CMSG_SPACE(struct.calcsize("@ll")) if hasattr(socket, "CMSG_SPACE") else 0
# A timespec of the kernel: seconds and nanoseconds as C longs.
unpack = struct.Struct("@ll").unpack


class ClockOffset:
    """How far the clock of the day is ahead of the axis."""

    __slots__ = ("offset_ns",)

    def __init__(self) -> None:
        self.offset_ns = 0
        self.measure()

    def measure(self, tries: int = 5) -> None:
        """Take the offset anew: the try whose two readings lie closest together has been disturbed least."""
        best = None
        for _ in range(tries):
            before = perf_counter_ns()
            day = time_ns()
            after = perf_counter_ns()
            if best is None or after - before < best[0]:
                best = (after - before, day - (before + after) // 2)
        if best is not None:
            self.offset_ns = best[1]


class Warmth:
    """Keeps the kernel's stamps switched on: it begins with them a while after the first socket has asked, and ends
    with the last. Made before the first request, and held until the last is answered."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def wait(self, limit_ns: int = 500_000_000) -> bool:
        """Wait until a read on a socket of our own comes with a stamp; False where none does."""
        try:
            with socket.create_server(("127.0.0.1", 0)) as server:
                near = socket.create_connection(server.getsockname())
                far, _ = server.accept()
        except OSError:  # a machine without even a loopback
            return False
        self._sockets = [near, far]
        if not ask_kernel(near):
            return False
        until = perf_counter_ns() + limit_ns
        while perf_counter_ns() < until:
            far.send(b"?")
            if near.recvmsg(1, ROOM)[1]:
                return True
        return False

    def close(self) -> None:
        for one in self._sockets:
            one.close()


def ask_kernel(sock: socket.socket) -> bool:
    """Ask for the kernel's stamps on this socket; False where there are none to be had."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True
