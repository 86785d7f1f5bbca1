"""Build backend of the package: setuptools, after the documentation was built and the commit was written into it.

An editable install does not need mkdocs: there, `make docs` builds the documentation. A source archive holds what was
built (documentation, web pages, completions, man pages) and not its sources, so that a wheel made of it has them too,
without Node.js.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
ROOT = Path(__file__).parents[1]
MKDOCS = "mkdocs>=1.6,<2"
# Read by `prony --version`, where there is no git to ask.
BUILD_FILE = ROOT / "src" / "prony" / "cli" / "build.json"
ASK_GIT = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
# What `make wheel` builds first; a package without it works, and says what it lacks.
BUILT_BEFORE = {"src/prony/server/site/index.html": "the web pages", "share/man/man1": "completions and man pages"}


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_documentation_requires()]


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_sdist(config_settings), *_documentation_requires()]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _prepare()
    return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    _prepare()
    return str(build_meta.build_sdist(sdist_directory, config_settings))


def _prepare() -> None:
    _build_documentation()
    _write_commit()
    for path, what in BUILT_BEFORE.items():
        if not (ROOT / path).exists():
            sys.stderr.write(f"{path} is missing: the package will lack {what}; `make wheel` builds them first\n")


def _write_commit() -> None:
    """Write which commit this is. A source archive has no git, and the file of the checkout that it was made in."""
    if not (ROOT / ".git").exists():
        return
    try:
        done = subprocess.run(ASK_GIT, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        BUILD_FILE.unlink(missing_ok=True)
        sys.stderr.write(f"git does not say which commit this is: the package will not know it ({exc})\n")
        return
    BUILD_FILE.write_text(json.dumps({"commit": done.stdout.strip()}) + "\n")


def _documentation_requires() -> list[str]:
    return [MKDOCS] if (ROOT / "mkdocs.yml").is_file() else []


def _build_documentation() -> None:
    if not _documentation_requires():
        return
    if importlib.util.find_spec("mkdocs") is None:  # with --no-build-isolation, nobody installed it
        sys.stderr.write("mkdocs is not installed: the package will lack the documentation\n")
        return
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=ROOT, check=True)
