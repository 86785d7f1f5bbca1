"""A recipe's text in, jobs out: the formats, the checks, the overrides and the matrix."""

from prony.recipe.dump import dump
from prony.recipe.expand import expand
from prony.recipe.load import LoadedRecipe, load, loads
from prony.recipe.problems import Problem

__all__ = ["LoadedRecipe", "Problem", "dump", "expand", "load", "loads"]
