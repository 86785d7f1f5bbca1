"""What a program, a notebook or a test calls: `prony.bench`, `prony.run_recipe`, `prony.timer`, the pytest plug-in."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# What `prony` itself offers, and where it stands; imported when it is first used, so that `import prony` stays cheap.
PUBLIC = {
    "bench": "prony.api.functions",
    "run_recipe": "prony.api.functions",
    "timer": "prony.api.block_timer",
}


def load_public(name: str) -> Any:
    """Return what `prony` offers under this name.

    Raises:
        AttributeError: It offers no such thing.
    """
    if name not in PUBLIC:
        raise AttributeError(f"module 'prony' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)
