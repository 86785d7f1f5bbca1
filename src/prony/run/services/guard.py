"""A token in as an argument; when standard input ends, everything that is alive and carries it is ended.

`python -P -m prony.run.services.guard TOKEN` outlives whoever started it by a moment: the pipe closes when that process
wants its commands to end, and when it was killed. It needs nothing but the standard library.
"""

from __future__ import annotations

import signal
import sys

from prony.run.services import reaper

_WITHIN_S = 30.0


def main() -> int:
    # Ctrl-C is for whoever started us; it closes the pipe when it is through.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(2**16):
        pass
    token = sys.argv[1]
    return 1 if reaper.kill_all(lambda: reaper.carrying(token), within_s=_WITHIN_S) else 0


if __name__ == "__main__":
    sys.exit(main())
