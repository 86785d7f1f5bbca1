"""`prony hashing`: the algorithms that can be measured here."""

from __future__ import annotations

import hashlib
import sys
from argparse import ArgumentParser, Namespace


def arguments(parser: ArgumentParser) -> None:
    """List the algorithms that can be measured here."""
    parser.add_argument("--count", action="store_true", help="only how many there are")


def command(options: Namespace) -> int:
    names = sorted(hashlib.algorithms_guaranteed)
    sys.stdout.write(f"{len(names)}\n" if options.count else "\n".join(names) + "\n")
    return 0
