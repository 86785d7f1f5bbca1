"""Write the recipe that times a function in fresh processes, where those can import it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prony.api.call_function import METRIC, find_function
from prony.app.quick_recipe import QuickRecipe, plain_name
from prony.errors import InputError, PronyError

_HINT = "use a function at the top level of a module, or leave out processes= to measure it in this process"


def draft_function_recipe(
    function: Callable[[], Any], *, processes: int, time_ns: int, runs: int | None
) -> QuickRecipe:
    """Return the recipe of a function that is timed in so many fresh processes, one after the other.

    Raises:
        InputError: No other process can import the function.
    """
    if processes < 1:
        raise InputError(f"processes={processes}: at least one is needed", hint="5 or more give an interval")
    place, folder = locate_function(function)
    words = [sys.executable, "-m", "prony.api.call_function", place, "--time-ns", str(time_ns)]
    words += ["--path", str(folder)] if folder is not None else []
    words += ["--runs", str(runs)] if runs is not None else []
    document: dict[str, Any] = {
        "name": plain_name(place.rpartition("/")[2].replace(":", ".")),
        "workload": {
            "kind": "script",
            "command": words,
            "directory": ".",
            "copy_files": False,
            "metrics": [{"name": METRIC, "unit": "ms", "better": "lower", "reduce": "median"}],
        },
        "measure": {"repeats": processes},
    }
    return QuickRecipe(document)


def locate_function(function: Callable[[], Any]) -> tuple[str, Path | None]:
    """Return how another process names a function, and the folder that it must import from where that is not known.

    Raises:
        InputError: It cannot be imported: a lambda, a function within a function, or one of a notebook.
    """
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", None) or ""
    where = getattr(function, "__name__", None) or type(function).__name__
    if not name or not module or "<" in name:
        raise InputError(f"{where} cannot be imported by another process", hint=_HINT)
    if module == "__main__":
        return _locate_in_script(name), None
    try:
        found = find_function(f"{module}:{name}")
    except (ImportError, PronyError) as exc:
        raise InputError(f"{module}.{name} cannot be imported by another process: {exc}", hint=_HINT) from exc
    if found is not function:
        raise InputError(f"{module}.{name} is another function when it is imported", hint=_HINT)
    return f"{module}:{name}", _folder_of(module)


def _locate_in_script(name: str) -> str:
    path = getattr(sys.modules["__main__"], "__file__", None)
    if path is None or path.startswith("<"):
        raise InputError(f"{name} is defined in a notebook or typed in, so no other process can import it", hint=_HINT)
    if not path.endswith(".py"):
        why = "whose name does not end in .py, so no other process can import it"
        raise InputError(f"{name} is defined in {path}, {why}", hint=_HINT)
    return f"{Path(path).absolute()}:{name}"


def _folder_of(module: str) -> Path | None:
    """Return the folder from which the module was imported; None where every process of this Python finds it."""
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:
        return None
    above = module.count(".") + (Path(file).name == "__init__.py")
    folder = Path(file).absolute().parents[above]
    return None if folder.is_relative_to(sys.prefix) or folder.is_relative_to(sys.base_prefix) else folder
