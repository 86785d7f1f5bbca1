"""`prony logs`: print the log of a job: what happened to it, and what its script, engine or service printed."""

from __future__ import annotations

import codecs
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server

if TYPE_CHECKING:
    from prony.client import Client
    from prony.model.failures import FailureReport
    from prony.model.log import LogPiece

_WAIT_S = 20.0


def arguments(parser: ArgumentParser) -> None:
    """Print the log of a job: what happened to it, and what its script, engine or service printed. Every line has its
    time, in UTC, and its source. It comes from a server (as far as the agent has sent it), else from the results on
    this machine."""
    parser.add_argument("job", metavar="JOB", nargs="?", help="a job's id, or the id of an experiment that has one job")
    parser.add_argument("--fleet", action="store_true", help="instead of one log: what failed in all jobs, by cause")
    parser.add_argument("--since", metavar="TIME", default="7d", help="with --fleet: how far to look back (7d)")
    add_json(parser)
    parser.add_argument("--follow", "-f", action="store_true", help="follow the log until the job ends")
    parser.add_argument("--attempt", type=int, metavar="N", help="which attempt (default: the newest)")
    parser.add_argument("--search", default="", metavar="TEXT", help="only lines with this text (default: all)")
    parser.add_argument(
        "--source", default="", metavar="NAME", help="only lines from here, such as run-0000.err (default: all)"
    )
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import connect_server, is_served, server_address

    _check(options)
    if options.fleet:
        return _print_failures(options)
    if server_address(options) is None and not is_served():
        return _print_here(options)
    with connect_server(options) as client:
        job_id = client.jobs.find(options.job)
        offset, show = 0, _Printer()
        while True:
            piece = _read_piece(client, job_id, offset, options)
            show(piece.text)
            if piece.ended or (not options.follow and piece.next_offset == offset):
                return 0
            offset = piece.next_offset


def _check(options: Namespace) -> None:
    """Refuse what is only for one of the two: the log of a job, and the failures of all."""
    from prony.errors import InputError

    if not options.fleet and options.job is None:
        raise InputError("give a job's id", hint="`prony jobs` lists them; --fleet groups the failures of all jobs")
    if options.fleet and (options.job or options.follow or options.attempt or options.search or options.source):
        hint = "leave out the job, --follow, --attempt, --search and --source"
        raise InputError("--fleet is about all jobs", hint=hint)
    if options.json and not options.fleet:
        raise InputError("--json needs --fleet", hint="a log is text")


def _print_failures(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text
    from prony.report.terminal.failures import format_failures

    report = _read_failures(options)
    if options.json:
        print_json(report.model_dump(mode="json"))
    else:
        print_text(format_failures(report))
    return 0


def _read_failures(options: Namespace) -> FailureReport:
    """Ask the server, or else the home of this machine."""
    from datetime import timedelta

    from prony.cli.remote import connect_server, is_served, server_address
    from prony.model.quantity import read_seconds

    back = timedelta(seconds=read_seconds(options.since, "--since", "7d"))
    if server_address(options) is not None or is_served():
        with connect_server(options) as client:
            return client.jobs.failures(days=back / timedelta(days=1))
    from prony.app.failures import read_failures
    from prony.ports.clock import SystemClock
    from prony.store.database import reading
    from prony.store.store import Store

    with Store.open() as store, reading(store.engine) as connection:
        return read_failures(connection, SystemClock().now() - back)


def _print_here(options: Namespace) -> int:
    """Print the logs that lie beside the results of an experiment, or of one job of it."""
    from prony.app.local_logs import local_logs, read_local_log
    from prony.cli.output import print_note
    from prony.errors import InputError
    from prony.model.log import LogFilter
    from prony.store.store import Store

    if options.attempt is not None:
        raise InputError("--attempt needs a server", hint="use --server URL or set PRONY_SERVER")
    wanted = LogFilter(options.search, options.source)
    with Store.open() as store:
        logs = local_logs(store, options.job)
        if options.follow and len(logs) > 1:
            raise InputError(f"--follow needs one job, and {options.job} has several", hint="give a job's id")
        if not logs:
            print_note("no log: the job printed nothing")
        for log in logs:
            if len(logs) > 1:
                print_note(f"== {log.title}")
            show = _Printer()
            for text in read_local_log(store, log, wanted, follow=options.follow, sleep=time.sleep):
                show(text)
    return 0


def _read_piece(client: Client, job_id: str, offset: int, options: Namespace) -> LogPiece:
    """Return the next piece; who follows waits for it, and for a server that is away."""
    from prony.client.wire import delays
    from prony.errors import TransportError

    wait_s = _WAIT_S if options.follow else 0.0
    for pause_s in delays():
        try:
            return client.jobs.logs(
                job_id,
                attempt=options.attempt,
                offset=offset,
                wait_s=wait_s,
                search=options.search,
                source=options.source,
            )
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
        from prony.model.shown import plain_log

        sys.stdout.write(plain_log(self._decoder.decode(piece)))
        sys.stdout.flush()
