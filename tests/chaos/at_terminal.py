"""Prony at a terminal of its own, which is its standard input; called like `prony`, in a session of its own."""

from __future__ import annotations

import fcntl
import sys
import termios

from prony.cli.main import main

if __name__ == "__main__":
    fcntl.ioctl(sys.stdin.fileno(), termios.TIOCSCTTY, 0)
    sys.exit(main())
