"""End every process that carries a token as soon as standard input ends.

`python -P -m prony.runner.services.orphan_guard TOKEN` outlives its parent by a moment: the pipe closes when that wants
its commands to end, and when it was killed. It needs nothing but the standard library.
"""

from __future__ import annotations

import signal
import sys

from prony.runner.services import process_tree

_WITHIN_S = 30.0


def main() -> int:
    # Ctrl-C is for whoever started us; it closes the pipe when it is through.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(2**16):
        pass
    token = sys.argv[1]
    return 1 if process_tree.kill_all(lambda: process_tree.carrying(token), within_s=_WITHIN_S) else 0


if __name__ == "__main__":
    sys.exit(main())
