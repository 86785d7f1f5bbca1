"""Fill in `$(NAME)` in a script's words and environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from prony.emit import FILE
from prony.kinds.script.runner.plan import Place

# Where the script runs: the folder with the copy of its files.
DIRECTORY = "PRONY_DIRECTORY"
_REFERENCE = re.compile(r"\$?\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
# What leads another interpreter astray, or is nobody's business but Prony's.
_UNWANTED = {"PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PRONY_TOKEN"}


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return text with `$(NAME)` replaced by the variable; what is unknown stays, and `$$(NAME)` stands for itself."""

    def fill(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(fill, text)


def environment_of(own: Mapping[str, str], served: Mapping[str, str], *, shims: Path, place: Place) -> dict[str, str]:
    """Return the variables of a script: those of Prony, those that its metrics need, how it finds its server, and its
    own over all."""
    found = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    before = [str(shims), *filter(None, [found.get("PYTHONPATH")])]
    # At the end: where no `python` is on the path, Prony's own is better than none.
    path = [*filter(None, [found.get("PATH", os.defpath)]), str(Path(sys.executable).parent)]
    found |= {FILE: str(place.emit_folder), "PYTHONPATH": os.pathsep.join(before), "PATH": os.pathsep.join(path)}
    found |= {DIRECTORY: str(place.folder), **served}
    for name, value in own.items():
        found[name] = expand_variables(value, found)
    if "PYTHONPATH" in own:
        found["PYTHONPATH"] = os.pathsep.join([str(shims), found["PYTHONPATH"]])
    return found
