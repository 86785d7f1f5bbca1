"""Which files of a folder belong to a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.runner.script_folders import files_of


@pytest.mark.parametrize("left_out", [".git/config", "__pycache__/a.pyc", "node_modules/x/a.js", ".venv/lib/a.py"])
def test_what_tools_leave_is_not_copied(tmp_path: Path, left_out: str) -> None:
    for name in ("run.sh", "lib/tool.py", left_out):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [path.relative_to(tmp_path).as_posix() for path in files_of(tmp_path)] == ["lib/tool.py", "run.sh"]


def test_a_virtual_environment_is_not_copied_whatever_its_name(tmp_path: Path) -> None:
    for name in ("run.sh", "env/pyvenv.cfg", "env/lib/python3.11/site-packages/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert files_of(tmp_path) == [tmp_path / "run.sh"]
