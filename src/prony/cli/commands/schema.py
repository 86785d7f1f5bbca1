"""`prony schema`: the recipe's JSON Schema."""

from __future__ import annotations


def command() -> None:
    """Print the JSON Schema of a recipe, for editors and other programs."""
    from prony.cli.output import print_json
    from prony.model.recipe import json_schema

    print_json(json_schema())
