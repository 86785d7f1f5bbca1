"""`prony logs`: print the log of a job: what happened to it, and what its script, engine or service printed."""

from __future__ import annotations

import codecs
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server

if TYPE_CHECKING:
    from prony.app.local_logs import LocalLog
    from prony.client import Client
    from prony.model.failures import FailureReport
    from prony.model.log import LogPiece
    from prony.model.queue import QueuedJob
    from prony.store.store import Store

_WAIT_S = 20.0
_NO_LINE = "no line of the log matches; leave out --search and --source to see all lines"


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
                break
            offset = piece.next_offset
        _note_rest(client.jobs.get(job_id).queued, show, options)
    return 0


def _note_rest(job: QueuedJob, show: _Printer, options: Namespace) -> None:
    """Say why a server has no log of the job, or not all of it yet, and what to do."""
    from prony.cli.output import print_note
    from prony.cli.remote import again
    from prony.model.queue import JobState
    from prony.model.states import ENDED

    more, why = f"prony logs {job.id} --follow{again(options)}", f": {job.reason}" if job.reason else ""
    if options.attempt is not None and options.attempt > job.attempt:
        print_note(f"job {job.id} has no attempt {options.attempt} yet: the newest is attempt {job.attempt}")
    elif job.state is JobState.WAITING and (options.attempt is None or options.attempt == job.attempt):
        print_note(f"job {job.id} waits for an agent{why}; `{more}` prints its log from its start on")
    elif job.state is JobState.LEASED and not options.follow:
        print_note(f"job {job.id} still runs on agent {job.agent_id}; `{more}` prints the rest as it comes")
    elif show.is_empty:
        print_note(_NO_LINE if _is_filtered(options) else f"no log: job {job.id} is {job.state}{why}")
    elif options.follow and job.state in ENDED - {JobState.COMPLETE}:
        print_note(f"job {job.id} is {job.state}{why}")


def _check(options: Namespace) -> None:
    """Refuse what is only for one of the two: the log of a job, and the failures of all."""
    from prony.errors import InputError

    if not options.fleet and options.job is None:
        listed = "`prony show ID` lists the jobs of an experiment; with a server, `prony jobs` lists all"
        raise InputError("give a job's id", hint=f"{listed}; --fleet groups the failures of all jobs")
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
    from prony.app.local_logs import read_local_log
    from prony.cli.output import print_note
    from prony.errors import InputError
    from prony.model.log import LogFilter
    from prony.store.store import Store

    if options.attempt is not None:
        raise InputError("--attempt needs a server", hint="use --server URL or set PRONY_SERVER")
    wanted, show = LogFilter(options.search, options.source), _Printer()
    with Store.open() as store:
        logs = _find_here(store, options)
        if options.follow and len(logs) > 1:
            raise InputError(f"--follow needs one job, and {options.job} has several", hint="give a job's id")
        for log in logs:
            if len(logs) > 1:
                print_note(f"== {log.title}")
            for text in read_local_log(store, log, wanted, follow=options.follow, sleep=time.sleep):
                show(text)
            show.end()
        if note := _describe_rest_here(store, show, options, has_logs=bool(logs)):
            print_note(note)
    return 0


def _find_here(store: Store, options: Namespace) -> list[LocalLog]:
    """Return the logs on this machine; with --follow, wait for the first one of an experiment that runs."""
    from prony.app.local_logs import is_running, local_logs
    from prony.errors import NotFoundError

    try:
        while True:
            logs = local_logs(store, options.job)
            if logs or not options.follow or not is_running(store, options.job):
                return logs
            time.sleep(1.0)
    except NotFoundError as exc:
        if exc.code != NotFoundError.code:
            raise
        hint = "`prony list` shows what this machine has; for a job of a server, add --server URL"
        raise NotFoundError(exc.message, hint=hint) from exc


def _describe_rest_here(store: Store, show: _Printer, options: Namespace, *, has_logs: bool) -> str:
    """Say why there is no log on this machine, or not all of it yet, and what to do."""
    from prony.app.experiment_data import resolve_reference
    from prony.app.local_logs import is_running
    from prony.store.placements import Placements

    experiment_id, _ = resolve_reference(store, options.job)
    if is_running(store, options.job) and not options.follow:
        if placed := Placements(store.home).of(experiment_id):
            return (
                f"experiment {experiment_id} runs at {placed[-1].target.name}: `prony watch {experiment_id}` follows it"
            )
        begin = "" if has_logs else "no log yet: nothing was printed so far; "
        return f"{begin}experiment {experiment_id} still runs: --follow prints the rest of one job's log as it comes"
    if has_logs:
        return _NO_LINE if show.is_empty and _is_filtered(options) else ""
    return f"no log: nothing was printed, or it was deleted; `prony show {experiment_id}` shows how it ended"


def _is_filtered(options: Namespace) -> bool:
    return bool(options.search or options.source)


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
        self.is_empty = True
        self.end()

    def __call__(self, piece: bytes) -> None:
        from prony.model.shown import plain_log

        self.is_empty = self.is_empty and not piece
        sys.stdout.write(plain_log(self._decoder.decode(piece)))
        sys.stdout.flush()

    def end(self) -> None:
        """Begin another log with the next piece."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a letter may be cut in two
