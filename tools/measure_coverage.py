"""Measure which lines and branches of the package the tests reach, in every process that they start.

`python -m tools.measure_coverage [pytest's arguments]` runs the tests and prints a table of the files that are not
wholly reached. It fails under 90 %, and where no test reaches a public function of `ports/`, `dispatch/`, `stats/` or
`analyse/`. How it measures is set in `pyproject.toml`, under `tool.coverage`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "coverage"
LEAST_PERCENT = 90
# Rooms in which every public function must be reached.
WHOLE = ("ports", "dispatch", "stats", "analyse")


def main(arguments: list[str]) -> int:
    """Run the tests under coverage, and check what they reached."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    # By its whole path: the processes that the tests start work in other folders, some with a `prony` of their own.
    has_failed = bool(_coverage("run", f"--source={ROOT / 'src' / 'prony'}", "-m", "pytest", *arguments))
    # What ended after the run had already been combined; newer versions combine the rest by themselves.
    _coverage("combine", "--append", "--quiet")
    is_low = bool(_coverage("report", f"--fail-under={LEAST_PERCENT}"))
    report = FOLDER / "coverage.json"
    _coverage("json", "--quiet", "-o", str(report))
    unreached = list(find_unreached(json.loads(report.read_text())))
    for name in unreached:
        print(f"no test reaches {name}")
    print(f"{len(unreached)} public functions of {', '.join(WHOLE)} are reached by no test")
    return int(has_failed or is_low or bool(unreached))


def _coverage(*words: str) -> int:
    environment = os.environ | {"COVERAGE_FILE": str(FOLDER / "data")}
    return subprocess.run([sys.executable, "-m", "coverage", *words], cwd=ROOT, env=environment, check=False).returncode


def find_unreached(report: dict[str, Any]) -> Iterator[str]:
    """Yield the public functions of the rooms above of which no line ran, as `FILE: NAME`."""
    for path, file in report["files"].items():
        parts = Path(path).parts
        if len(parts) > 2 and parts[:2] == ("src", "prony") and parts[2] in WHOLE:
            for name, region in file["functions"].items():
                if _is_public(name) and region["summary"]["num_statements"] and not region["executed_lines"]:
                    yield f"{path}: {name}"


def _is_public(name: str) -> bool:
    """Tell whether a dotted name has no private part; what stands in no function has the empty name."""
    return bool(name) and not any(part.startswith("_") for part in name.split("."))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
