"""Give scripts `prony.emit` by `import prony`. This file is the script's `prony/__init__.py`.

Where Prony itself is installed under the script's interpreter, all else of it is found as ever.
"""

from __future__ import annotations

from pathlib import Path
from pkgutil import extend_path

__path__ = extend_path([str(Path(__file__).parent)], "prony")

from prony.emit import emit

__all__ = ["emit"]


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version

    return version("prony")
