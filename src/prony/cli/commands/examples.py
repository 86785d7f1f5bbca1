"""`prony examples`: the recipes that come with Prony."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """List the recipes that come with Prony; with a name, print that one, to be kept and changed."""
    parser.add_argument("name", nargs="?", help="an example: print its text")
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
    print_columns(("EXAMPLE", "KIND", "WHAT IT IS"), [(one.file, one.kind, one.summary) for one in examples()])
    return 0
