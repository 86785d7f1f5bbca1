"""Inspect the installed engines of a home: start each one and report what it can do."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from prony.errors import CapacityError
from prony.model.device import EngineReport
from prony.ports import plugins
from prony.store.home import Home


def inspect_engines(home: Home, names: Sequence[str] = ()) -> list[EngineReport]:
    """Start every engine, or those named, two at a time, and report what each can do here."""
    from concurrent.futures import ThreadPoolExecutor

    from prony.runner.engines import inspect

    wanted = list(names) or list(plugins.find_plugins(plugins.ENGINES))
    with tempfile.TemporaryDirectory(prefix="prony-") as scratch, ThreadPoolExecutor(2) as pool:
        folder = Path(scratch)
        return list(pool.map(lambda name: inspect(name, home.engines, folder / f"{name}.log"), wanted))


def inspect_version(home: Home, name: str, version: str) -> EngineReport:
    """Start one version of an engine that has an environment of its own; its report is named `NAME@VERSION`."""
    from prony.runner.engines import check_version, inspect

    with tempfile.TemporaryDirectory(prefix="prony-") as scratch:
        report = inspect(name, home.engines, Path(scratch) / f"{name}.log", version)
    if report.version is not None:
        try:
            check_version(name, version, report.version)
        except CapacityError as exc:
            report = report.model_copy(update={"state": "broken", "reason": exc.message, "hint": exc.hint})
    return report.model_copy(update={"name": f"{name}@{version}"})
