"""Read recipes in processes of their own, within limits of CPU time and memory."""

from __future__ import annotations

import os
import sys

from prony.app.fleet.read_recipe import ReadOrder, ReadRecipe, read_recipe
from prony.app.fleet.work_pool import Trade, WorkPool
from prony.app.fleet.work_process import WorkLimits, work
from prony.errors import InputError

LIMITS = WorkLimits(cpu_s=30.0, wall_s=120.0, memory_bytes=2**29)
_MOST_WAITING = 64
_NICER = 5


def _too_costly() -> InputError:
    return InputError(
        f"reading this recipe took more than {LIMITS.cpu_s:g} s of CPU time or {LIMITS.memory_bytes // 2**20} MiB",
        hint="make it smaller: fewer values in the matrix, fewer entries in exclude, shorter texts",
        code="recipe_too_costly",
    )


READING: Trade[ReadOrder, ReadRecipe] = Trade(
    "reads recipes", "prony.app.fleet.reading", read_recipe, on_loss=_too_costly, on_limit=_too_costly, limits=LIMITS,
    most_waiting=_MOST_WAITING,
)  # fmt: skip


class Readers(WorkPool[ReadOrder, ReadRecipe]):
    def __init__(self, most: int) -> None:
        super().__init__(READING, most)


def main() -> None:
    import prony.recipe.yaml_text  # noqa: F401 - what most orders need, before the first one comes

    if sys.platform != "win32":
        os.nice(_NICER)  # the server answers everybody else first
    work(read_recipe, LIMITS)
