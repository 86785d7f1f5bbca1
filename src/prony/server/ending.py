"""End this process some seconds after a signal, whatever its threads and its event loop are busy with."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable

import structlog

LONGEST_S = 9.0
_LAST_RESORT_S = 0.5
_FORCED = 3
_log = structlog.get_logger("prony.server")


def end_within(seconds: float = LONGEST_S, *, at_last: Callable[[], None] = lambda: None) -> None:
    """Begin to count: who has not ended by then is ended, with a line that says what still ran.

    `at_last` is called before that, where any thread of this process still can.
    """
    threading.Thread(target=_force_end, args=(seconds, at_last), name="prony-end", daemon=True).start()
    # It needs no lock of the interpreter's, so it works even where one call keeps all threads waiting.
    faulthandler.dump_traceback_later(seconds + _LAST_RESORT_S, exit=True)


def _force_end(seconds: float, at_last: Callable[[], None]) -> None:
    time.sleep(seconds)
    at_last()
    busy = sorted(one.name for one in threading.enumerate() if one is not threading.current_thread())
    _log.warning("stopped by force", after_s=seconds, threads=busy)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(_FORCED)
