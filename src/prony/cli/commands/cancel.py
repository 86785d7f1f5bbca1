"""`prony cancel`: stop a job or an experiment on a server, or an experiment at a target."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Stop a job, or every job of an experiment, on a server or a target. Completed measurements are kept."""
    parser.add_argument("id", metavar="ID", help="a job, or an experiment: an id, the start of an id, or last")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.cancel_or_retry import change_by_id
    from prony.cli.remote import connect_server
    from prony.cli.submit import cancel_placed

    if cancel_placed(options):
        return 0
    with connect_server(options) as client:
        return change_by_id(options, "cancelled", client, job=client.jobs.cancel, experiment=client.experiments.cancel)
