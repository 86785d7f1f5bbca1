"""Run one recipe with the files of two checkouts of a repository: the sides of a duet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.ports.workload import kind_of
from prony.recipe import LoadedRecipe
from prony.recipe.overrides import anchor_value, names_a_file

FOLDERS = (".", "src")


def checkout_sides(
    loaded: LoadedRecipe, base: Path, other: Path, folders: Sequence[str] = FOLDERS
) -> dict[str, dict[str, str]]:
    """Return both sides of a duet: a with the files of the other checkout, b with those of this one.

    The recipe is this checkout's on both sides: what is compared is the code and not how it is measured.

    Args:
        loaded: The recipe.
        base: The folder that its relative paths begin at.
        other: The other checkout: the folder that stands for the root of this one.
        folders: Folders of a checkout that programs import from, before what is installed.

    Raises:
        InputError: There is no such folder, or the recipe uses no file of a checkout.
    """
    here, there = root_of_checkout(base), other.resolve()
    if not there.is_dir():
        raise InputError(
            f"{other} is not a folder",
            hint="make a second checkout with `git worktree add --detach FOLDER main`, and name that FOLDER",
        )
    if here == there:
        raise InputError(
            f"{other} is this checkout itself",
            hint="make a second one with `git worktree add --detach FOLDER main`, and name that FOLDER",
        )
    mine = _files_within(loaded, base, here)
    kind = kind_of(loaded.recipe.workload).prepare
    sides = {
        side: {path: str(root / place) for path, place in mine.items()} | kind.settings_of_checkout(root, folders)
        for side, root in (("a", there), ("b", here))
    }
    if sides["a"] == sides["b"]:
        raise InputError("the recipe uses no file of this checkout", hint="name a model or a directory by its path")
    return sides


def root_of_checkout(folder: Path) -> Path:
    """Return the root of the repository that a folder lies in; outside of one, the folder itself."""
    place = folder.resolve()
    return next((one for one in (place, *place.parents) if (one / ".git").exists()), place)


def _files_within(loaded: LoadedRecipe, base: Path, root: Path) -> dict[str, Path]:
    """Return the settings that name files of this checkout, each with its place in it."""
    found = {}
    for path, value in _leaves(loaded.recipe.workload.model_dump(mode="json", exclude_none=True), "workload"):
        place = Path(str(anchor_value(path, value, base.resolve())))
        if names_a_file(path) and place.is_absolute() and place.resolve().is_relative_to(root):
            found[path] = place.resolve().relative_to(root)
    for path, values in loaded.recipe.matrix.axes.items():
        if anchor_value(path, values, base) != values:
            raise InputError(
                f"the matrix varies files in {path}, so another checkout cannot replace them",
                hint="name one file in the workload, and take it out of the matrix",
            )
    return found


def _leaves(document: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    """Yield every text of a document with its path; lists are passed over, for a side of a duet has plain values."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}.{key}")
        elif isinstance(value, str):
            yield f"{above}.{key}", value
