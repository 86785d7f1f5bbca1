"""A home in, a report of every engine that it has out: each is started once and asked."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from prony.model.device import EngineReport
from prony.ports import plugins
from prony.store.home import Home


def inspect_engines(home: Home, names: Sequence[str] = ()) -> list[EngineReport]:
    """Start every engine, or those named, two at a time, and report what each can do here."""
    from concurrent.futures import ThreadPoolExecutor

    from prony.run.engines import inspect

    wanted = list(names) or list(plugins.found(plugins.ENGINES))
    with tempfile.TemporaryDirectory(prefix="prony-") as scratch, ThreadPoolExecutor(2) as pool:
        folder = Path(scratch)
        return list(pool.map(lambda name: inspect(name, home.engines, folder / f"{name}.log"), wanted))
