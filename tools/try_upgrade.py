"""Upgrade a home from an older wheel to a newer one, and see that every experiment is still there.

`python -m tools.try_upgrade OLD.whl NEW.whl` installs the older wheel into an environment of its own, measures a
command with it, installs the newer one over it, and asks that for the same experiments. A newer Prony must also back
up and restore what the older one left.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RECIPE = """\
name: before-the-upgrade
workload: {kind: script, command: "echo '{\\"answer\\": 42}'", metrics: [{name: answer}]}
measure: {repeats: 3, warmup: 0}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="prony-upgrade-") as scratch:
        trial = UpgradeTrial(Path(scratch))
        trial.install(options.old)
        before = trial.measure()
        trial.install(options.new)
        lost = trial.find_lost(before)
    print(f"{len(before)} experiments before, {len(lost)} lost" + (f": {', '.join(lost)}" if lost else ""))
    return 1 if lost else 0


class UpgradeTrial:
    """An environment and a home that live through an upgrade."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._python = scratch / "venv" / "bin" / "python"
        self._home = scratch / "home"

    def install(self, wheel: Path) -> None:
        if not self._python.exists():
            _run(sys.executable, "-m", "venv", self._scratch / "venv")
        pip = (self._python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*pip, "--upgrade", wheel.absolute())
        # An older wheel of the same version number is replaced too.
        _run(*pip, "--force-reinstall", "--no-deps", wheel.absolute())

    def measure(self) -> dict[str, Any]:
        """Run a small recipe, and return what the home then has."""
        recipe = self._scratch / "recipe.yaml"
        recipe.write_text(RECIPE)
        self._prony("run", recipe)
        return self._experiments(self._home)

    def find_lost(self, before: dict[str, Any]) -> list[str]:
        """Return the experiments that the newer Prony lacks or shows otherwise, in this home or in a restored one."""
        archive, restored = self._scratch / "backup.tar", self._scratch / "restored"
        self._prony("backup", archive)
        self._prony("restore", archive, home=restored)
        homes = [self._experiments(home) for home in (self._home, restored)]
        return sorted(name for name, state in before.items() if any(home.get(name) != state for home in homes))

    def _experiments(self, home: Path) -> dict[str, Any]:
        found = json.loads(self._prony("list", "--json", home=home))
        return {one["id"]: (one["name"], one["state"]) for one in found}

    def _prony(self, *words: str | Path, home: Path | None = None) -> str:
        return _run(self._python, "-P", "-m", "prony", *words, environment={"PRONY_HOME": str(home or self._home)})


def _run(*words: str | Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
