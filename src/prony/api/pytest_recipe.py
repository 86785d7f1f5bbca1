"""Write the recipe that measures tests in fresh processes of pytest."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.app.quick_recipe import plain_name
from prony.errors import InputError

_PROCESSES, _PAIRS = 5, 10
_FOLDERS = (".", "src")


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
        """Return the recipe: one script, a number for each test, and of a duet both checkouts."""
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
        if self.other is not None:
            sides = {side: self._side(folder) for side, folder in (("a", self.other), ("b", self.root))}
            found["duet"] = sides | {"pairs": self.processes or _PAIRS}
        return found | ({"gates": list(self.gates)} if self.gates else {})

    def _side(self, folder: Path) -> dict[str, str]:
        """Return what differs in one checkout; its own code is imported before what is installed."""
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder", hint="name another checkout: git worktree add FOLDER main")
        kept = [str(folder / one) for one in self.folders or _FOLDERS if (folder / one).is_dir()]
        path = os.pathsep.join([*kept, *filter(None, [os.environ.get("PYTHONPATH")])])
        return {"workload.directory": str(folder), "workload.environment.PYTHONPATH": path}


def default_name(root: Path) -> str:
    """Return what a session's experiment is called where nobody named it."""
    return plain_name(f"pytest-{root.name}")
