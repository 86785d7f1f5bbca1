"""Time one function in this process and tell its durations: `python -m prony.api.call_function MODULE:NAME`.

What `prony.bench(function, processes=5)` runs in each fresh process.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from prony.api.time_function import CallTimes, time_function
from prony.emit import emit
from prony.errors import InputError

METRIC = "call_ms"
# As multiprocessing does it: a script that is imported by this name does not begin again.
_SCRIPT = "__prony_main__"
_MOST_TOLD = 1000


def main() -> None:
    """Read the words of the command line, time the function and tell each duration."""
    parser = ArgumentParser(prog="prony.api.call_function", allow_abbrev=False)
    parser.add_argument("function", metavar="MODULE:NAME", help="a module, or a .py file, and a function in it")
    parser.add_argument("--path", help="folder to import the module from")
    parser.add_argument("--runs", type=int, help="samples at most")
    parser.add_argument("--time-ns", type=int, required=True, help="how long to measure")
    options = parser.parse_args()
    if options.path:
        sys.path.insert(0, options.path)
    function = find_function(options.function)
    emit_durations(METRIC, time_function(function, runs=options.runs, time_ns=options.time_ns))


def find_function(place: str) -> Callable[[], Any]:
    """Return the function that `MODULE:NAME` or `FILE.py:NAME` names.

    Raises:
        InputError: The module has no such function.
    """
    where, _, name = place.rpartition(":")
    found: Any = _load_script(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"{where} has no function {name}", hint="define it at the top level of the module")
    function: Callable[[], Any] = found
    return function


def is_timing_process() -> bool:
    """Is this a process that `prony.bench` started to time a function?"""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == "prony.api.call_function"


def emit_durations(metric: str, times: CallTimes) -> None:
    """Tell how long the calls took: all durations, or as many of them, evenly chosen, as a report can hold."""
    step = -(-len(times.durations_ms) // _MOST_TOLD)
    for value in times.durations_ms[::step]:
        emit({metric: value}, unit="ms")


def _load_script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_SCRIPT, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported", hint="check that it is a Python file that can be read")
    module = sys.modules[_SCRIPT] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
