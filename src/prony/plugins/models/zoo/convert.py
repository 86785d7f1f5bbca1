"""`python convert.py IN.onnx OUT`: convert a zoo model to the format of OUT's ending.

It is started by its path under the interpreter of the engine that loads the format, where Prony need not be installed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def convert(source: Path, target: Path) -> str | None:
    """Convert one file and return what went wrong, or None."""
    from prony.errors import PronyError

    try:
        if target.suffix == ".pt2":
            from prony.plugins.models.zoo.to_torch import write_pt2

            write_pt2(source, target)
        elif target.suffix == ".tflite":
            from prony.plugins.models.zoo.to_tflite import write_tflite

            write_tflite(source, target)
        else:
            return f"no converter writes {target.suffix}"
    except ModuleNotFoundError as exc:
        return f"{exc.name} is not installed for {sys.executable}"
    except PronyError as exc:
        return exc.message
    return None


def _find_prony() -> None:
    """Make this very Prony importable, and nothing that lies beside it: those packages may be for another Python."""
    here = Path(__file__).resolve().parent
    if sys.path and Path(sys.path[0]).resolve() == here:
        del sys.path[0]
    root = here.parents[2]
    spec = importlib.util.spec_from_file_location("prony", root / "__init__.py", submodule_search_locations=[str(root)])
    if spec is None or spec.loader is None:
        raise ImportError(f"no Prony at {root}")
    sys.modules["prony"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["prony"])


if __name__ == "__main__":
    _find_prony()
    sys.exit(convert(Path(sys.argv[1]), Path(sys.argv[2])))
