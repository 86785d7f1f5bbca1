"""Find a server's program on this machine, or say how to install it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from prony.errors import NotFoundError


def find_program(names: Iterable[str], given: str | None = None, base: Path = Path()) -> Path | None:
    """Return the program that was given, or the first that PATH has or that lies beside this interpreter.

    `given` is a path, relative to `base`, where it has a slash in it; else a name."""
    if given is not None and "/" in given:
        path = (base / Path(given).expanduser()).absolute()
        return path if path.is_file() else None
    for name in (given,) if given is not None else names:
        # As the system finds it, and as a package put it beside the interpreter that runs Prony.
        place = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
        if place is not None:
            return Path(place).absolute()
    return None


def missing(names: Iterable[str], given: str | None, how: str) -> str | None:
    """Say that a program is not there and how to get it; None where it is, or where only the recipe's place tells."""
    if given is not None and "/" in given and not Path(given).expanduser().is_absolute():
        return None
    names = tuple(names)
    if find_program(names, given) is not None:
        return None
    if given is not None:
        return f"there is no program {given}; to get one: {how}"
    return f"no {' or '.join(names)} on PATH; to get one: {how}"


def package_version(script: Path, package: str) -> str:
    """Return the version of a Python package from the environment that its script lies in; empty where none tells."""
    environment = script.resolve().parent.parent
    for folder in environment.glob(f"lib/python*/site-packages/{package}-*.dist-info"):
        return folder.name.removesuffix(".dist-info").rpartition("-")[2]
    return ""


def require_program(names: Iterable[str], given: str | None, base: Path) -> Path:
    """Return where the program lies; it must be there."""
    path = find_program(names, given, base)
    if path is None:
        name = given or " or ".join(names)
        raise NotFoundError(f"there is no program {name}", hint="name it as settings.program", code="no_program")
    return path
