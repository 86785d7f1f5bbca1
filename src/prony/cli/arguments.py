"""Arguments that several commands share, said once."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction
from pathlib import Path


def add_json(parser: ArgumentParser, *, inner: bool = False) -> None:
    """Add --json; `inner` for an action of a command that has it too, so that it may stand before or after the word."""
    default = SUPPRESS if inner else False
    parser.add_argument("--json", action="store_true", default=default, help="print as JSON")


def add_report(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--report", action=BooleanOptionalAction, default=True, help="write an HTML report beside the results"
    )


def add_gates(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--gates", choices=("lenient", "strict"), default="lenient", help="strict: a gate that cannot be told fails too"
    )


def add_experiment(parser: ArgumentParser, *, required: bool = False) -> None:
    meaning = "an id, the beginning of one, or last"
    if required:
        parser.add_argument("experiment", metavar="ID", help=meaning)
    else:
        parser.add_argument("experiment", metavar="ID", nargs="?", default="last", help=f"{meaning} (last)")


def add_experiments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "experiments", metavar="ID", nargs="*", default=["last"], help="ids, their beginnings, or last (last)"
    )


def add_server(parser: ArgumentParser, *, inner: bool = False) -> None:
    """Add where the server is and who asks; the token itself is never written on a command line, where others read."""
    default = SUPPRESS if inner else None
    parser.add_argument("--server", metavar="URL", default=default, help="the server to ask (PRONY_SERVER)")
    parser.add_argument(
        "--token-file", metavar="PATH", type=Path, default=default, help="file that holds the token (PRONY_TOKEN)"
    )
