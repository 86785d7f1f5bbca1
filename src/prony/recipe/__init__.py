"""Recipes: read, check, override and expand them into jobs."""

from prony.recipe.dump import dump
from prony.recipe.expand import expand
from prony.recipe.load import LoadedRecipe, load, loads
from prony.recipe.problems import DocumentProblem

__all__ = ["DocumentProblem", "LoadedRecipe", "dump", "expand", "load", "loads"]
