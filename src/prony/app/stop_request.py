"""Notice the signals that ask a runner to stop, also while it waits for a slow server."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from prony.runner.context import Stopped
from prony.runner.process_group import stop_signals

_PAUSE_S = 0.05


class StopRequest:
    """Remembers that SIGINT or SIGTERM came (or SIGHUP, of a terminal); the runner looks at it between steps."""

    def __init__(self, *, then_interrupts: bool = False) -> None:
        self.asked = False
        self._interrupts = False
        self._then_interrupts = then_interrupts
        numbers = list(stop_signals())
        # Whoever began with nohup wants to go on when the terminal ends.
        if then_interrupts and sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._before = {number: signal.signal(number, self._ask) for number in numbers}

    def close(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, *_: object) -> None:
        if self.asked and self._then_interrupts:
            raise KeyboardInterrupt
        self.asked = True
        if self._interrupts:
            self._interrupts = False  # once: whoever cleans up on the way out is not disturbed again
            raise Stopped

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Raise Stopped the moment that the signal comes, for as long as the block runs."""
        with _handlers_run_at_once([int(number) for number in self._before], lambda: self._interrupts):
            self._interrupts = True
            try:
                yield
            finally:
                self._interrupts = False


@contextmanager
def _handlers_run_at_once(numbers: Sequence[int], is_needed: Callable[[], bool]) -> Iterator[None]:
    """Have the handlers of these signals run at once, whatever this thread waits for; it must be the main thread.

    Python runs a handler between two of its own steps. Where a signal comes after the last of them and before a call
    that waits, its handler would run when that call returns: for a silent server, after its timeout. So while
    `is_needed`, another thread interrupts the call by a signal whose handler does nothing.
    """
    if sys.platform == "win32":  # no signal reaches a call there
        yield
        return
    main = threading.get_ident()
    told, tells = socket.socketpair()
    tells.setblocking(False)

    def interrupt_calls() -> None:
        while came := told.recv(64):
            while not set(numbers).isdisjoint(came) and is_needed():
                signal.pthread_kill(main, signal.SIGURG)
                time.sleep(_PAUSE_S)

    before = signal.signal(signal.SIGURG, lambda *_: None)
    before_fd = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=interrupt_calls, name="prony-stop", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before_fd)
        signal.signal(signal.SIGURG, before)
        tells.close()
        thread.join()
        told.close()
