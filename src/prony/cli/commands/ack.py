"""`prony ack`: mark a change as known, so that it is not reported again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Acknowledge a change: it is no longer reported, and its level becomes the new normal."""
    parser.add_argument("change", metavar="CHANGE", help="a change's id, or the start of one")
    parser.add_argument("--reason", default="", help="the reason, shown to others later")
    parser.add_argument("--expected", action="store_true", help="the change is intended")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_answer
    from prony.cli.remote import open_bench
    from prony.model.history import Acknowledgement

    words = Acknowledgement(reason=options.reason, expected=options.expected)
    with open_bench(options) as bench:
        change = bench.histories.ack(bench.histories.find_change(options.change), words)
    return print_answer(change, f"{change.id} acknowledged. {change.sentence}", as_json=options.json)
