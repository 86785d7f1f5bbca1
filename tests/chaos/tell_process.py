"""Print as JSON what a process sees of itself; then `fail`, `wait` for a signal or `exit N`, as it is told."""

from __future__ import annotations

import json
import os
import signal
import sys
import time


def main(words: list[str]) -> None:
    about = {
        "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0), "folder": os.getcwd(),  # noqa: PTH109
        "words": words, "marker": os.environ.get("MARKER"), "variables": sorted(os.environ), "umask": os.umask(0),
        "path": sys.path, "files": sorted(int(name) for name in os.listdir("/proc/self/fd")),  # noqa: PTH208
        "is_forked": "servers.starter" in sys.modules or "servers.forked" in sys.modules,
        "original": sys.orig_argv, "name": __name__, "heard": sys.stdin.readline() if "read" in words else "",
        "interrupts": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "terminates": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
    }  # fmt: skip
    sys.stdout.write(json.dumps(about) + "\n")
    sys.stdout.flush()
    sys.stderr.write("said on standard error\n")
    if "fail" in words:
        raise LookupError("ordered to fail")
    if "wait" in words:
        time.sleep(600)
    if "exit" in words:
        sys.exit(int(words[-1]))


if __name__ == "__main__":
    main(sys.argv[1:])
