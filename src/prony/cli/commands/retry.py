"""`prony retry`: retry a job, or an experiment's unsuccessful jobs, on a server."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Put a failed, stopped or cancelled job back in the queue; for an experiment, all such jobs."""
    parser.add_argument("id", metavar="ID", help="a job, or an experiment: an id, the start of an id, or last")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.cancel_or_retry import change_by_id
    from prony.cli.remote import connect_server

    with connect_server(options) as client:
        return change_by_id(options, "retried", client, job=client.jobs.retry, experiment=client.experiments.retry)
