"""`prony --version` names the commit: from git in a checkout, from the build's file in a package."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path

from prony import __version__
from prony.cli.version import read_commit
from servers.commands import call_prony


def test_the_line_has_version_commit_python_and_platform() -> None:
    told = call_prony("--version").stdout
    found = re.fullmatch(r"prony (\S+) \(commit (\S+), Python (\S+), (\w+ \S+)\)\n", told)
    assert found is not None, told
    assert (found[1], found[3]) == (__version__, platform.python_version())
    assert found[4] == f"{platform.system()} {platform.machine()}"


def test_a_package_has_the_commit_that_its_build_wrote(tmp_path: Path) -> None:
    file = tmp_path / "build.json"
    assert read_commit(tmp_path, file) == ""
    file.write_text(json.dumps({"commit": "0123456789ab"}))
    assert read_commit(tmp_path, file) == "0123456789ab"
    file.write_text("[]")
    assert read_commit(tmp_path, file) == ""


def test_a_checkout_asks_git_and_not_the_file_of_an_earlier_build(tmp_path: Path) -> None:
    file = tmp_path / "build.json"
    file.write_text(json.dumps({"commit": "of-before"}))
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    assert read_commit(tmp_path, file) == ""  # nothing is committed yet
    author = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *author, "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True)
    assert re.fullmatch(r"[0-9a-f]{12}", read_commit(tmp_path, file))
