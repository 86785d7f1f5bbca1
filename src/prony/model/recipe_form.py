"""Short forms that a person fills in to get a recipe, and what comes of one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prony.model.base import Noun
from prony.model.kind_card import FormField


class RecipeForm(Noun):
    """`changes_recipe`: it changes a recipe that is there, instead of writing a new one."""

    name: str
    label: str
    about: str = ""
    fields: tuple[FormField, ...]
    changes_recipe: bool = False


class RecipeForms(Noun):
    """The forms of which recipes can be made."""

    items: tuple[RecipeForm, ...]


class FilledForm(Noun):
    """A form by its name, with answers by the paths of its fields.

    `text` is the recipe to change, and the ending of `name` its format.
    """

    form: str = Field(max_length=100)
    answers: dict[str, Annotated[str, Field(max_length=10_000)]] = Field(default={}, max_length=50)
    text: str = Field(default="", max_length=1_000_000)
    name: str = Field(default="recipe.yaml", max_length=200)


class DraftedRecipe(Noun):
    """A recipe as YAML."""

    text: str
