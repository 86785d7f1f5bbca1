"""The figures of the house are those of the tree that they are asked of."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.house import House, figures, figures_at

BEFORE = '"""Do it."""\n\n\ndef do() -> None:\n    try:\n        print()\n    except Exception:\n        raise\n'


def test_figures_of_a_commit_stand_beside_those_of_now(tmp_path: Path) -> None:
    module = tmp_path / "src" / "prony" / "one.py"
    module.parent.mkdir(parents=True)
    module.write_text(BEFORE)
    for command in ("init -q", "add src", "-c user.name=a -c user.email=a@b commit -q -m one"):
        subprocess.run(["git", "-C", str(tmp_path), *command.split()], check=True)
    module.write_text('"""Do nothing."""\n\n\ndef do() -> None: ...\n')
    before, now = figures_at("HEAD", tmp_path), figures(House(tmp_path))
    assert (before["lines"], now["lines"]) == (8, 4)
    assert (before["broad_per_1000"], now["broad_per_1000"]) == (125, 0)
