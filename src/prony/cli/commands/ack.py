"""`prony ack`: a change in, noted as known out; it is told no more."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Note that a change is known: it is told no more, and its level is the one to be held from now on."""
    parser.add_argument("change", metavar="CHANGE", help="a change's id, or the beginning of one")
    parser.add_argument("--reason", default="", help="why, for whoever asks later")
    parser.add_argument("--expected", action="store_true", help="it was meant to be so")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.histories import histories
    from prony.cli.output import print_answer
    from prony.model.history import Acknowledgement

    with histories(options) as source:
        change = source.ack(options.change, Acknowledgement(reason=options.reason, expected=options.expected))
    return print_answer(change, f"{change.id} is acknowledged. {change.sentence}", as_json=options.json)
