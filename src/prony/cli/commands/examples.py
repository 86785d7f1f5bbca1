"""`prony examples`: the recipes that come with Prony."""

from __future__ import annotations

import re
import shutil
from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """List the recipes that come with Prony; with a name, print that recipe."""
    parser.add_argument("name", nargs="?", help="an example; prints its text")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_columns, print_json, print_text
    from prony.recipe.example_recipes import example, examples

    if options.name:
        one = example(options.name)
        if options.json:
            print_json(one.model_dump(mode="json"))
        else:
            print_text(one.text.rstrip("\n"))
        return 0
    if options.json:
        print_json([one.model_dump(mode="json") for one in examples()])
        return 0
    heads, width = ("EXAMPLE", "KIND", "WHAT IT IS"), shutil.get_terminal_size((120, 24)).columns
    before = sum(max(len(row[place]) for row in (heads, *_rows())) + 2 for place in (0, 1))
    print_columns(heads, [(file, kind, _shorten(told, width - before)) for file, kind, told in _rows()])
    return 0


def _rows() -> list[tuple[str, str, str]]:
    from prony.recipe.example_recipes import examples

    return [(one.file, one.kind, one.summary) for one in examples()]


def _shorten(text: str, width: int) -> str:
    """Return the first sentence of a text, cut where a line ends; `prony examples NAME` has all of it."""
    first = re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0]
    return first if len(first) <= max(width, 30) else f"{first[: max(width, 30) - 1].rstrip()}…"
