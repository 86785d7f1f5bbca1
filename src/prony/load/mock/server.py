"""Options in, the mock served until a signal or its parent's end: sockets, signals, and the word that it is ready.

`python -P -m prony.load.mock.server OPTIONS` takes them as JSON, says where it is in one line of JSON, and ends
with its standard input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from prony.errors import CapacityError, InputError, PronyError, exit_code
from prony.load.mock.connection import MockConnection, MockContext, refuse
from prony.load.mock.ground_truth import Truth
from prony.load.mock.prefix_cache import PrefixCache
from prony.load.mock.respond import Faults, Works
from prony.load.mock.routes import Routes
from prony.load.mock.start import MockOptions
from prony.load.mock.timer import Wheel

_BACKLOG = 4096
_TEND_S = 0.1


def run_mock(options: MockOptions, say: Callable[[str], None], *, until_eof: bool = False) -> int:
    """Serve until a signal comes; return 0, or 130 after Ctrl-C. `say` is told the URL when requests are taken.

    `until_eof`: end also when standard input does."""
    try:
        import uvloop
    except ModuleNotFoundError as exc:
        raise CapacityError(f"{exc.name} is not installed", hint="the mock runs on Linux and macOS") from exc
    with ExitStack() as stack:
        listening, url = stack.enter_context(_listening(options))
        loop = uvloop.new_event_loop()
        stack.callback(loop.close)
        serving = _Serving(loop, options, listening)
        stack.callback(serving.close)
        ended_by: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _end, loop, ended_by, number)
        if until_eof:
            loop.add_reader(0, _end_at_eof, loop)
        _raise_limit()
        # Nothing here makes circles that live long; a collection would come in the middle of the streams.
        gc.freeze()
        gc.disable()
        stack.callback(gc.enable)
        loop.call_soon(say, url)
        loop.run_forever()
        return 130 if ended_by[:1] == [signal.SIGINT] else 0


def _end(loop: asyncio.AbstractEventLoop, ended_by: list[int], number: int) -> None:
    ended_by.append(number)
    loop.stop()


def _end_at_eof(loop: asyncio.AbstractEventLoop) -> None:
    if not os.read(0, 4096):
        loop.stop()


class _Serving:
    """The mock on its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: MockOptions, listening: socket.socket) -> None:
        self._loop = loop
        self._listening = listening
        self._faults = Faults(options)
        self._truth = Truth()
        self._wheel = Wheel(loop)
        cache = PrefixCache(options.prefix_cache) if options.prefix_cache else None
        routes = Routes(Works(options, self._truth, self._wheel, self._faults, cache))
        # The kernel's stamps cost some microseconds a read, which matter only where nothing else takes time.
        with_stamps = options.is_paced and not options.unix
        self._desk = MockContext(loop, self._truth, routes.plan, with_stamps=with_stamps)
        loop.add_reader(listening.fileno(), self._accept)
        self._tend()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            if self._faults.refuses():
                self._truth.fault("refuse")
                refuse(sock)
            else:
                MockConnection(sock, self._desk)

    def _tend(self) -> None:
        self._desk.axis.measure()
        self._truth.trim()
        self._tending = self._loop.call_later(_TEND_S, self._tend)

    def close(self) -> None:
        self._tending.cancel()
        self._loop.remove_reader(self._listening.fileno())
        for line in list(self._desk.lines):
            line.drop()
        self._wheel.close()


@contextmanager
def _listening(options: MockOptions) -> Iterator[tuple[socket.socket, str]]:
    """Listen for as long as the block runs; the URL comes with it."""
    try:
        sock, url = _on_path(options.unix) if options.unix else _on_port(options.host, options.port)
    except OSError as exc:
        where = options.unix or f"{options.host}:{options.port}"
        raise CapacityError(
            f"cannot listen on {where}: {exc.strerror or exc}",
            hint="check whether another server uses it; --port 0 takes any free port",
            code="address_unavailable",
        ) from exc
    with sock:
        sock.setblocking(False)
        yield sock, url
    if options.unix:
        Path(options.unix).unlink(missing_ok=True)


def _on_path(path: str) -> tuple[socket.socket, str]:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.bind(path)
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock, f"unix://{Path(path).absolute()}"


def _on_port(host: str, port: int) -> tuple[socket.socket, str]:
    try:
        family, _, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as exc:
        raise InputError(f"{host!r} is not an address of this machine: {exc}", hint="try --host 127.0.0.1") from exc
    sock = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    shown, bound = sock.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(shown, shown)  # all addresses: one that answers here
    return sock, f"http://[{shown}]:{bound}" if ":" in shown else f"http://{shown}:{bound}"


def _raise_limit() -> None:
    """Allow as many connections as the system lets us have."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a system may promise more than it gives
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _tell(said: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    try:
        return run_mock(MockOptions(**json.loads(arguments[0])), lambda url: _tell(ready_message(url)), until_eof=True)
    except PronyError as exc:
        _tell({"error": exc.to_dict()})
        return exit_code(exc)


def ready_message(url: str) -> dict[str, object]:
    """Return what a mock says when it takes requests."""
    return {"url": url, "pid": os.getpid()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
