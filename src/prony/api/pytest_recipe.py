"""Write the recipe that measures tests in fresh processes of pytest."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.app.checkouts import FOLDERS, checkout_sides, root_of_checkout
from prony.app.quick_recipe import plain_name
from prony.recipe import LoadedRecipe, loads
from prony.recipe.yaml_write import write_yaml

_PROCESSES, _PAIRS = 5, 10
_NAME = "the options of pytest"


@dataclass(frozen=True)
class TestRecipe:
    """What the recipe of a session is made of: its folder, the tests by metric, and what the options say.

    `plain` are words that a fresh process needs so that the plug-ins of this session leave it alone.
    """

    __test__ = False  # pytest would look for tests in it

    root: Path
    metrics: Mapping[str, str]
    name: str
    plain: Sequence[str] = ()
    processes: int | None = None
    time_ns: int = 10**9
    gates: Sequence[str] = ()
    other: Path | None = None
    folders: Sequence[str] = ()

    def document(self) -> dict[str, Any]:
        """Return the recipe of this checkout: one script, and a number for each test."""
        command = [sys.executable, "-m", "pytest", "--prony-child", str(self.time_ns), *self.plain]
        found: dict[str, Any] = {
            "name": self.name,
            "workload": {
                "kind": "script",
                "command": [*command, *self.metrics.values()],
                "directory": str(self.root),
                "copy_files": False,
                "metrics": [
                    {"name": metric, "unit": "ms", "better": "lower", "reduce": "median"} for metric in self.metrics
                ],
            },
            "measure": {"repeats": self.processes or _PROCESSES},
        }
        return found | ({"gates": list(self.gates)} if self.gates else {})

    def load(self) -> LoadedRecipe:
        """Return the recipe; with another checkout the tests of both take turns."""
        document = self.document()
        loaded = loads(write_yaml(document), name=_NAME)
        if self.other is None:
            return loaded
        # Folders are those of the root of pytest, which need not be that of the repository.
        place = self.root.resolve().relative_to(root_of_checkout(self.root))
        sides = checkout_sides(loaded, self.root, self.other, [str(place / one) for one in self.folders or FOLDERS])
        document["duet"] = sides | {"pairs": self.processes or _PAIRS}
        return loads(write_yaml(document), name=_NAME)


def default_name(root: Path) -> str:
    """Return what a session's experiment is called where nobody named it."""
    return plain_name(f"pytest-{root.name}")
