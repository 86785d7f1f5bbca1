"""Write a recipe as YAML that loads to an equal recipe."""

from __future__ import annotations

from prony.model.recipe import Recipe


def dump(recipe: Recipe) -> str:
    """Write the recipe as a person would: no defaults, quantities with their units."""
    from prony.recipe.yaml_write import write_yaml

    return write_yaml(recipe.model_dump(mode="json", exclude_defaults=True))
