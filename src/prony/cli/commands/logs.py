"""`prony logs`: a job on a server in, what its runner and engine printed out."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_server

if TYPE_CHECKING:
    from prony.client import Client
    from prony.client.jobs import LogPiece

_WAIT_S = 20.0


def arguments(parser: ArgumentParser) -> None:
    """Print the log of a job, as far as its agent has sent it."""
    parser.add_argument("job", metavar="JOB", help="a job's id, or the id of an experiment that has one job")
    parser.add_argument("--follow", "-f", action="store_true", help="go on as it grows, until the job has ended")
    parser.add_argument("--attempt", type=int, metavar="N", help="which attempt; the newest by default")
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import connect
    from prony.client.names import job_named

    with connect(options) as client:
        job_id = job_named(client, options.job)
        offset = 0
        while True:
            piece = _piece(client, job_id, offset, options)
            _print(piece.text)
            if piece.ended or (not options.follow and piece.next_offset == offset):
                return 0
            offset = piece.next_offset


def _piece(client: Client, job_id: str, offset: int, options: Namespace) -> LogPiece:
    """Return the next piece; who follows waits for it, and for a server that is away."""
    from prony.client.wire import delays
    from prony.errors import TransportError

    wait_s = _WAIT_S if options.follow else 0.0
    for pause_s in delays():
        try:
            return client.logs(job_id, attempt=options.attempt, offset=offset, wait_s=wait_s)
        except TransportError:
            if not options.follow:
                raise
        time.sleep(pause_s)
    raise AssertionError  # pauses never end


def _print(text: bytes) -> None:
    if sys.stdout.isatty():  # what an engine prints must not move the cursor of whoever reads it
        from prony.report.safe import visible

        text = visible(text.decode(errors="replace")).encode()
    sys.stdout.buffer.write(text)
    sys.stdout.flush()
