"""Arguments that several commands share, said once."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print as JSON")


def add_report(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--report", action=BooleanOptionalAction, default=True, help="write an HTML report beside the results"
    )


def add_experiment(parser: ArgumentParser, *, required: bool = False) -> None:
    meaning = "an id, the beginning of one, or last"
    if required:
        parser.add_argument("experiment", metavar="ID", help=meaning)
    else:
        parser.add_argument("experiment", metavar="ID", nargs="?", default="last", help=f"{meaning} (last)")
