"""Give scripts `prony.emit` by `import prony`. This file is the script's `prony/__init__.py`.

Where Prony itself is installed under the script's interpreter, all else of it is found as ever.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import extend_path
from typing import Any

__path__ = extend_path([str(Path(__file__).parent)], "prony")

from prony.emit import emit

__all__ = ["emit"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("prony")
    try:
        api = import_module("prony.api")
    except ModuleNotFoundError:  # Prony is not installed under this interpreter: there is `emit` alone
        raise AttributeError(name) from None
    return api.load_public(name)
