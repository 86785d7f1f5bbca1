"""A machine on which nobody else runs, for processes whose numbers may not be void because other tests run too.

The counters that Prony reads (`prony.instruments.kernel.ROOT`) are those of a folder in which the CPUs stand still.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_CUSTOMISE = """
from pathlib import Path
import prony.instruments.kernel
prony.instruments.kernel.ROOT = Path({root!r})
"""


def quiet_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that finds this machine quiet, and so do all that it starts."""
    root, path = folder / "quiet", folder / "quiet-path"
    (root / "proc").mkdir(parents=True, exist_ok=True)
    shutil.copyfile("/proc/stat", root / "proc" / "stat")
    path.mkdir(exist_ok=True)
    (path / "sitecustomize.py").write_text(_CUSTOMISE.format(root=str(root)))
    given = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(path), *([given] if given else [])])}
