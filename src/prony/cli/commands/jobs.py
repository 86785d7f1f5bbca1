"""`prony jobs`: list the jobs of a server, or show one with all its attempts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server

if TYPE_CHECKING:
    from prony.client import Client

_STATES = ("waiting", "leased", "complete", "partial", "failed", "cancelled")


def arguments(parser: ArgumentParser) -> None:
    """List the jobs of a server with their agent and why they wait; or show one with all attempts."""
    parser.add_argument("job", metavar="JOB", nargs="?", help="show all details of one job")
    parser.add_argument("--state", choices=_STATES, help="only jobs in this state")
    parser.add_argument(
        "--experiment", metavar="ID", help="only jobs of this experiment: an id, the start of an id, or last"
    )
    parser.add_argument("--agent", metavar="ID", help="only jobs of this agent: an id, a name, or the start of one")
    parser.add_argument("--label", metavar="KEY=VALUE", help="only jobs with this label")
    parser.add_argument("--limit", "-n", type=int, default=50, help="number of newest jobs (50)")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import connect_server

    with connect_server(options) as client:
        return _list(client, options) if options.job is None else _show(client, options)


def _list(client: Client, options: Namespace) -> int:
    from functools import partial

    from prony.cli.columns import JOB, job_cells
    from prony.cli.output import print_listed
    from prony.model.queue import JobState
    from prony.ports.use_cases import iterate_pages

    wanted = partial(
        client.jobs.page,
        state=JobState(options.state) if options.state else None,
        experiment=client.experiments.find(options.experiment) if options.experiment else None,
        agent=client.agents.find(options.agent) if options.agent else None,
        label=_label(options.label) if options.label else None,
    )
    jobs = list(iterate_pages(wanted, options.limit))
    return print_listed(jobs, JOB, job_cells, none="no job matches", as_json=options.json)


def _label(text: str) -> tuple[str, str]:
    from prony.errors import InputError

    key, equals, value = text.partition("=")
    if not (key and equals):
        raise InputError(f"--label {text!r} is not a label", hint="write --label KEY=VALUE")
    return key, value


def _show(client: Client, options: Namespace) -> int:
    from prony.cli.columns import ATTEMPT, attempt_cells
    from prony.cli.output import print_columns, print_json, print_text
    from prony.error_codes import name_job
    from prony.report.escaping import one_line

    detail = client.jobs.get(client.jobs.find(options.job))
    if options.json:
        print_json(detail.model_dump(mode="json"))
        return 0
    queued = detail.queued
    print_text(one_line(f"{queued.id}  {queued.title}"))
    print_text(one_line(f"{queued.state}{f': {queued.reason}' if queued.reason else ''}"))
    if queued.failure is not None:
        hint = name_job(queued.failure.hint, queued.id)
        print_text(one_line(f"{queued.failure.code}: {queued.failure.message}{f'; {hint}' if hint else ''}"))
    if detail.attempts:
        print_columns(ATTEMPT, [attempt_cells(attempt) for attempt in detail.attempts])
    return 0
