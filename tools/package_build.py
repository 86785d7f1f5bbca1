"""Build backend of the package: setuptools, after the documentation was built into it.

An editable install does not need mkdocs: there, `make docs` builds the documentation. A source archive holds the built
pages and not their sources, so that a wheel made of it has them too.
"""

from __future__ import annotations

import importlib.util
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


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_documentation_requires()]


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_sdist(config_settings), *_documentation_requires()]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _build_documentation()
    return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    _build_documentation()
    return str(build_meta.build_sdist(sdist_directory, config_settings))


def _documentation_requires() -> list[str]:
    return [MKDOCS] if (ROOT / "mkdocs.yml").is_file() else []


def _build_documentation() -> None:
    if not _documentation_requires():
        return
    if importlib.util.find_spec("mkdocs") is None:  # with --no-build-isolation, nobody installed it
        sys.stderr.write("mkdocs is not installed: the package will lack the documentation\n")
        return
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=ROOT, check=True)
