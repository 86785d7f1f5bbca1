"""Which kinds of workload are found, and what is said where there are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import prony

# As when sources are copied to a machine: what they import is there, but nothing says what they bring.
PROGRAM = """
import importlib.metadata, sys
importlib.metadata.entry_points = lambda **names: importlib.metadata.EntryPoints()
from prony.cli.main import main
sys.exit(main(["check", "recipe.yaml"]))
"""


def test_sources_that_are_not_installed_say_so(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("name: any\nworkload: {kind: script, command: 'true'}\n")
    environment = os.environ | {"PYTHONPATH": str(Path(prony.__file__).parents[1]), "PRONY_HOME": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "Prony is not installed for this Python" in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr
