"""Client process of the load generator: carry out an order and record its requests.

Started as `python -P -m prony.load.client`, maybe before there is an order. It hears the order's path on its standard
input, opens its lines, says `{"ready": ...}` on its standard output, hears `start NS`, sends, and says `{"done": ...}`.
`stop` and SIGTERM end it shortly; so does the end of its standard input, because then nobody wants its rows any more.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from prony.load import orders
from prony.load.closed_loop import ClosedLoop
from prony.load.connection import ConnectionPool
from prony.load.limits import raise_files
from prony.load.open_loop import OpenLoop
from prony.load.orders import ClientOrder
from prony.load.poll import Poll, come_first
from prony.load.salts import SaltedContents
from prony.load.sender import RequestContents, Sender
from prony.load.stamps import Warmth

_IN, _OUT = 0, 1


class LoadClient:
    """One process: the sender, and what it hears from the generator."""

    def __init__(self, order: ClientOrder) -> None:
        # Instants are kept only by who runs when they come; users wait for replies, which the kernel stamps. Before the
        # sender is made, because a thread of it must not be overtaken while it holds what all threads need.
        is_real_time = order.first_here > 0 and come_first(order.first_here)
        module, _, name = order.wire.partition(":")
        wire = getattr(importlib.import_module(module), name)
        self.poll = Poll()
        site = ConnectionPool(order.address, self.poll, wire, order.wire_options)
        site.keeps = order.keeps
        content_of, count = orders.content_of(Path(order.folder))
        salted = SaltedContents(order, content_of, count) if order.salt else None
        self.sender = Sender(
            order, site, RequestContents(count, content_of, salted), OpenLoop if order.is_open else ClosedLoop
        )
        self.sender.is_real_time = is_real_time
        self._heard = b""
        self._was_left = False

    def run(self) -> int:
        raise_files()
        signal.signal(signal.SIGTERM, self._asked_to_stop)
        # A signal must end the wait for events too: it writes where the loop reads.
        woken, wakes = socket.socketpair()
        for end in (woken, wakes):
            end.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        self.poll.watch(woken.fileno(), lambda: _drain(woken))
        os.set_blocking(_IN, False)
        self.poll.watch(_IN, self._hear)
        warmth = Warmth()
        warmth.wait()
        # All that is made from here on is let go by hand, so that nothing is searched for garbage while a load runs.
        gc.collect()
        gc.freeze()
        gc.disable()
        self.sender.preopen(self.sender.order.lines, self._ready)
        self.poll.run()
        facts = self.sender.close()
        warmth.close()
        if not self._was_left:
            tell_generator({"done": facts})
        return 0

    def _ready(self) -> None:
        tell_generator({"ready": {"pid": os.getpid(), "opened": self.sender.site.opened}})

    def _hear(self) -> None:
        data = os.read(_IN, 4096)
        if not data:
            self._was_left = True
            self.poll.is_over = True
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            word, _, rest = line.partition(b" ")
            if word == b"start":
                self.sender.start(int(rest))
            elif word == b"stop":
                self.sender.stop()

    def _asked_to_stop(self, *_: Any) -> None:
        if self.sender.begin_ns:
            self.poll.at(0, self.sender.stop)
        else:
            self.poll.is_over = True


def _drain(woken: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        woken.recv(4096)


def tell_generator(message: dict[str, Any]) -> None:
    os.write(_OUT, json.dumps(message).encode() + b"\n")


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal's Ctrl-C the generator hears too
    path = b""
    while (byte := os.read(_IN, 1)) != b"\n":  # no more than the path: what follows it is the loop's to read
        if not byte:
            return 0
        path += byte
    return LoadClient(orders.read_order(Path(os.fsdecode(path)))).run()


if __name__ == "__main__":
    sys.exit(main())
