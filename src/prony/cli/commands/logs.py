"""`prony logs`: print the log of a job's runner, engine or service."""

from __future__ import annotations

import codecs
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_server

if TYPE_CHECKING:
    from prony.client import Client
    from prony.client.jobs import FetchedLog

_WAIT_S = 20.0


def arguments(parser: ArgumentParser) -> None:
    """Print the log of a job: from a server (as far as the agent has sent it), else from the results on this
    machine."""
    parser.add_argument("job", metavar="JOB", help="a job's id, or the id of an experiment that has one job")
    parser.add_argument("--follow", "-f", action="store_true", help="follow the log until the job ends")
    parser.add_argument("--attempt", type=int, metavar="N", help="which attempt (default: the newest)")
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import connect_server, is_served, server_address

    if server_address(options) is None and not is_served():
        return _here(options)
    with connect_server(options) as client:
        job_id = client.jobs.find(options.job)
        offset, show = 0, _Printer()
        while True:
            piece = _piece(client, job_id, offset, options)
            show(piece.text)
            if piece.ended or (not options.follow and piece.next_offset == offset):
                return 0
            offset = piece.next_offset


def _here(options: Namespace) -> int:
    """Print the logs that lie beside the results of an experiment, or of one job of it."""
    from prony.app.local_experiments import log_files
    from prony.cli.output import print_note
    from prony.errors import InputError
    from prony.store.store import Store

    if options.follow or options.attempt is not None:
        hint = "use --server URL or set PRONY_SERVER"
        raise InputError("--follow and --attempt need a server", hint=hint)
    with Store.open() as store:
        files = log_files(store, options.job)
    if not files:
        print_note("no log: the job printed nothing")
    for title, path in files:
        print_note(f"== {title}")
        _Printer()(path.read_bytes())
    return 0


def _piece(client: Client, job_id: str, offset: int, options: Namespace) -> FetchedLog:
    """Return the next piece; who follows waits for it, and for a server that is away."""
    from prony.client.wire import delays
    from prony.errors import TransportError

    wait_s = _WAIT_S if options.follow else 0.0
    for pause_s in delays():
        try:
            return client.jobs.logs(job_id, attempt=options.attempt, offset=offset, wait_s=wait_s)
        except TransportError:
            if not options.follow:
                raise
        time.sleep(pause_s)
    raise AssertionError  # pauses never end


class _Printer:
    """Prints a log piece by piece; what an engine or a script printed never acts on a terminal, even behind a pipe."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a letter may be cut in two

    def __call__(self, piece: bytes) -> None:
        from prony.model.shown import for_terminal

        sys.stdout.write(for_terminal(self._decoder.decode(piece)))
        sys.stdout.flush()
