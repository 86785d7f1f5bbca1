"""Check that the target a recipe names exists."""

from __future__ import annotations

from prony.errors import InputError
from prony.recipe import LoadedRecipe

# What `place.on` may name: the machine that runs the jobs.
TARGETS = ("local",)


def check_target(loaded: LoadedRecipe) -> None:
    """Refuse a recipe whose processes are to run where nobody can start them."""
    wanted = loaded.recipe.place.on
    if wanted is None or wanted in TARGETS:
        return
    mark = loaded.marks.get(("place", "on"))
    where = "" if mark is None else f"{mark.source}:{mark.line}: " if mark.line else f"{mark.source}: "
    raise InputError(
        f"{where}no target is called {wanted!r}; there is {', '.join(TARGETS)}",
        hint="--on local runs the service and its clients as processes on this machine",
        code="unknown_target",
    )
