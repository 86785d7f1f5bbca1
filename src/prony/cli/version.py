"""Say which Prony this is: its version and commit, the Python and the platform that run it."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

from prony import __version__

# The build of a package writes it. A checkout asks git instead: there, the file may be of an earlier commit.
BUILD_FILE = Path(__file__).with_name("build.json")
ROOT = Path(__file__).parents[3]
_ASK_GIT = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def describe_version() -> str:
    """Return one line for bug reports."""
    commit = read_commit(ROOT, BUILD_FILE)
    told = f"commit {commit}" if commit else "commit unknown"
    return f"prony {__version__} ({told}, Python {platform.python_version()}, {platform.system()} {platform.machine()})"


def read_commit(root: Path, build_file: Path) -> str:
    """Return the commit that the code is of, with `-dirty` where it was changed since; empty where nobody knows."""
    if (root / ".git").exists():
        return _ask_git(root)
    try:
        return str(json.loads(build_file.read_bytes())["commit"])
    except (OSError, ValueError, KeyError, TypeError):  # installed by other means than a build
        return ""


def _ask_git(root: Path) -> str:
    try:
        done = subprocess.run(_ASK_GIT, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or a checkout of another user
        return ""
    return done.stdout.strip()
