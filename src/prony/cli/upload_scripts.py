"""Bring the folder of scripts that a recipe names to where it will run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import InputError

if TYPE_CHECKING:
    from prony.ports.use_cases import UseCases
    from prony.recipe import LoadedRecipe

_PIECE = 2**20


def upload_scripts(bench: UseCases, loaded: LoadedRecipe) -> list[str]:
    """Bring the folder that a script's recipe names; return what to set in the recipe, or nothing."""
    from prony.runner.scripts.packing import REFERENCE, directory_of, pack_folder

    work = loaded.recipe.workload
    if "workload.directory" in loaded.recipe.matrix.axes:
        raise InputError(
            "the matrix varies workload.directory, and one folder travels with a recipe",
            hint="name a folder that holds all of them, and vary workload.command",
            code="recipe",
        )
    if work.folder is None or REFERENCE.fullmatch(work.folder):
        return []
    base = loaded.path.parent if loaded.path is not None else Path.cwd()
    folder = directory_of(work.folder, base)
    with tempfile.TemporaryDirectory(prefix="prony-scripts-") as scratch:
        tar = Path(scratch) / "scripts.tar"
        sha256 = pack_folder(folder, tar)
        bench.scripts.keep(sha256, _pieces(tar if tar.exists() else folder))
    return [f"workload.directory=sha256:{sha256}"]


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
