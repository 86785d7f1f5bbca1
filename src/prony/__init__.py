"""Prony: run benchmark recipes and report numbers with intervals and verdicts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prony.emit import emit as emit  # a script calls `prony.emit`

if TYPE_CHECKING:
    from prony.api.block_timer import timer as timer
    from prony.api.functions import bench as bench
    from prony.api.functions import run_recipe as run_recipe

__version__ = "0.1.0"


# By its name, because every room may import `prony` and none may import what stands above it.
_API = f"{__name__}.api"


def __getattr__(name: str) -> Any:
    return import_module(_API).load_public(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module(_API).PUBLIC})
