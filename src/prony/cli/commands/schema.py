"""`prony schema`: the recipe's JSON Schema."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def arguments(_parser: ArgumentParser) -> None:
    """Print the JSON Schema of a recipe, for editors and other programs."""


def command(_options: Namespace) -> int:
    from prony.cli.output import print_json
    from prony.model.recipe import json_schema

    print_json(json_schema())
    return 0
