"""Prony without scipy and matplotlib, as a plain `pip install prony` has it: numbers and verdicts, but no drawings."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHOUT = (
    "import sys; sys.modules.update(scipy=None, matplotlib=None); from prony.cli.main import main; sys.exit(main())"
)
MISSING = "pip install 'prony[report]'"


def plain_prony(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in an interpreter that can import neither."""
    command = [sys.executable, "-P", "-c", WITHOUT, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
def test_a_plain_install_measures_judges_and_says_how_to_get_reports() -> None:
    done = plain_prony("bench", "--command", "true", "--runs", "6")
    assert done.returncode == 0, done.stderr
    assert "wall" in done.stdout
    assert "[" in done.stdout  # an interval
    assert f"no HTML report: plots need matplotlib, which is not installed: {MISSING}" in done.stderr
    asked = plain_prony("report", "last")
    assert asked.returncode == 3
    assert MISSING in asked.stderr
    assert "| true |" in plain_prony("report", "last", "--format", "md").stdout
    compared = plain_prony("bench", "--command", "true", "--command", "sleep 0.01", "--runs", "6", "--no-report")
    assert compared.returncode == 0, compared.stderr


@pytest.mark.parametrize("name", ["scipy", "matplotlib"])
def test_the_base_install_asks_for_neither(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [one for one in project["dependencies"] if one.startswith(name)]


def test_a_server_and_all_bring_the_reports() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "prony[report]" in extras["server"]
    (everything,) = extras["all"]
    assert "report" in everything.partition("[")[2].rstrip("]").split(",")
