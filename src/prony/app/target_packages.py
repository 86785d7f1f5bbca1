"""Pack Prony and what it needs for the Python of a target."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

import prony
from prony.errors import CapacityError, InputError
from prony.ports.executor import Interpreter

_OWN = "prony"
# The wheels that are fetched are those of Linux, whatever this machine is.
_FETCHED_FOR = "linux"


@dataclass(frozen=True)
class Requirement:
    """What a distribution requires: `text` as pip reads it, without the marker that says when."""

    name: str
    extras: tuple[str, ...]
    text: str
    marker: str

    def is_for(self, system: str) -> bool:
        """Is it required on this operating system, named as `sys.platform` does?"""
        told = re.findall(r"sys_platform\s*([!=]=)\s*['\"](\w+)['\"]", self.marker)
        named = [system for operator, system in told if operator == "=="]
        return (not named or system in named) and ("!=", system) not in told


def interpreter_here() -> Interpreter:
    """Return the Python of this process, as a target tells its own."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return Interpreter(version, platform.machine(), "glibc" if platform.libc_ver()[0] else "other")


def expand_extras(extras: Sequence[str]) -> list[str]:
    """Return extras of Prony with those that they bring.

    Raises:
        InputError: Prony has no such extra.
    """
    own = distribution(_OWN)
    known = own.metadata.get_all("Provides-Extra") or []
    found: list[str] = []
    waiting = [*extras]
    while waiting:
        extra = waiting.pop()
        if extra not in known:
            raise InputError(f"Prony has no extra {extra!r}", hint=f"choose from {', '.join(known)}")
        if extra not in found:
            found.append(extra)
            waiting += [inner for one in find_requirements(own, [extra]) if one.name == _OWN for inner in one.extras]
    return found


def find_requirements(found: Distribution, extras: Sequence[str]) -> list[Requirement]:
    """Return what a distribution requires, with its extras."""
    wanted = []
    for line in found.requires or ():
        text, _, marker = (part.strip() for part in line.partition(";"))
        own = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        name = re.match(r"([A-Za-z0-9._-]+)\s*(?:\[([^]]*)\])?", text)
        if name is not None and (own is None or own[1] in extras):
            inner = tuple(word.strip() for word in (name[2] or "").split(",") if word.strip())
            wanted.append(Requirement(re.sub(r"[-_.]+", "-", name[1]).lower(), inner, text, marker))
    return wanted


def write_packages(there: Interpreter, extras: Sequence[str], archive: Path, say: Callable[[str], None]) -> None:
    """Write everything that goes into the target's site-packages; its last file is `complete`.

    What is installed here goes there where the Python is the same; anything else is fetched.

    Raises:
        CapacityError: there are no packages for that Python, or no way to them.
    """
    missing = _find_missing(extras)
    with tarfile.open(archive, "w") as out, tempfile.TemporaryDirectory(prefix="prony-wheels-") as wheels:
        if there == interpreter_here() and not missing:
            for found in required_distributions(extras):
                for path, name in _files_of(found):
                    out.add(path, arcname=name, recursive=False)
        else:
            why = f" ({missing[0]} is not installed here)" if there == interpreter_here() else ""
            say(f"fetching packages for Python {there.version} on {there.machine}{why}")
            _fetch_packages(there, extras, Path(wheels))
            out.add(wheels, arcname=".")
        for path in sorted(Path(prony.__path__[0]).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                out.add(path, arcname=f"prony/{path.relative_to(prony.__path__[0])}", recursive=False)
        for path, name in _files_of(distribution(_OWN)):
            if ".dist-info/" in name:
                out.add(path, arcname=name, recursive=False)
        out.addfile(tarfile.TarInfo("complete"), BytesIO())


def _find_missing(extras: Sequence[str]) -> list[str]:
    """Return what Prony's extras require on this system and is not installed here."""
    return [
        one.name
        for one in find_requirements(distribution(_OWN), extras)
        if one.name != _OWN and one.is_for(sys.platform) and _find_installed(one.name) is None
    ]


def required_distributions(extras: Sequence[str]) -> list[Distribution]:
    """Return what Prony needs, as it is installed here, without Prony itself."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = find_requirements(distribution(_OWN), extras)
    while waiting:
        one = waiting.pop()
        installed = _find_installed(one.name)
        # What is not installed is wanted on another system than this.
        if installed is None or one.name == _OWN or (one.name, one.extras) in seen:
            continue
        seen.add((one.name, one.extras))
        found[one.name] = installed
        waiting += find_requirements(installed, one.extras)
    return list(found.values())


def _find_installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _files_of(found: Distribution) -> Iterator[tuple[Path, str]]:
    """Return the files of a distribution with their names in site-packages; scripts beside it stay behind."""
    for file in found.files or ():
        path = Path(str(found.locate_file(file)))
        if ".." not in file.parts and "__pycache__" not in file.parts and path.is_file():
            yield path, str(file)


def _fetch_packages(there: Interpreter, extras: Sequence[str], into: Path) -> None:
    """Fetch wheels for another interpreter than this one, unpacked."""
    needed = [
        one.text
        for one in find_requirements(distribution(_OWN), extras)
        if one.name != _OWN and one.is_for(_FETCHED_FOR)
    ]
    tags = [f"manylinux_2_28_{there.machine}", f"manylinux2014_{there.machine}", f"manylinux_2_17_{there.machine}"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
    command += ["--target", str(into), "--python-version", there.version, "--implementation", "cp"]
    command += [word for tag in tags for word in ("--platform", tag)]
    done = subprocess.run([*command, *needed], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CapacityError(
            f"no packages for Python {there.version} on {there.machine}: {done.stderr.strip()[-300:]}",
            hint="set the target's option python to a version like this one, or run this where pip has a network",
            code="no_packages",
        )
