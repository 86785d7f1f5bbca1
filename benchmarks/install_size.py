"""What an installation holds: distributions, megabytes and import times with some extras, in fresh environments.

Sizes are of files as they were shipped, without the bytecode that is made of them; times are of the CPU. Bound: the
base has at most 330 MB. pip must reach an index or have everything in its cache.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.bench import describe, scratch

BOUND_MB = 330.0
SETS = ("", "report", "server", "all")
IMPORTS = ("prony.cli.main", "prony.runner.jobs", "prony.agent.agent", "prony.app.bench")
TURNS = 5
_LOOK = """
import importlib.metadata as metadata, json, pathlib
found = {}
for one in metadata.distributions():
    paths = [pathlib.Path(one.locate_file(file)) for file in one.files or ()]
    found[one.name] = sum(path.stat().st_size for path in paths if path.is_file() and path.suffix != ".pyc")
print(json.dumps(found))
"""
_TIME = "import time; begin = time.process_time(); import {module}; print(time.process_time() - begin)"
_OURS = ("pip", "setuptools")  # a virtual environment has these before anything is installed


def install(source: Path, extras: str, folder: Path) -> tuple[Path, float]:
    """Make an environment and install Prony with these extras; return its interpreter and the seconds it took."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    wanted = f"{source}[{extras}]" if extras else str(source)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted], check=True,
                   stderr=subprocess.DEVNULL)  # fmt: skip
    return python, time.perf_counter() - begin


def sizes_mb(python: Path) -> dict[str, float]:
    done = subprocess.run([python, "-c", _LOOK], capture_output=True, text=True, check=True)
    return {name: size / 1e6 for name, size in json.loads(done.stdout).items() if name not in _OURS}


def import_ms(python: Path, module: str) -> float:
    """Return the median CPU time of an import in fresh interpreters, after one that wrote its bytecode."""
    command = [str(python), "-P", "-c", _TIME.format(module=module)]
    taken = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(TURNS + 1)
    ]
    return median(taken[1:]) * 1e3


def main() -> int:
    parser = describe(__doc__)
    parser.add_argument("--source", type=Path, default=Path(__file__).parent.parent, help="a checkout (this one)")
    parser.add_argument("--extras", nargs="*", default=list(SETS), help="sets of extras, '' for none")
    options = parser.parse_args()
    base_mb = 0.0
    for extras in options.extras:
        with scratch() as folder:
            python, seconds = install(options.source.resolve(), extras, folder / "environment")
            found = sizes_mb(python)
            whole = sum(found.values())
            base_mb = base_mb if extras else whole
            largest = sorted(found.items(), key=lambda pair: -pair[1])[:6]
            print(
                f"prony{f'[{extras}]' if extras else ''}: {len(found)} distributions, {whole:.0f} MB, {seconds:.0f} s"
            )
            print("  " + ", ".join(f"{name} {size:.0f}" for name, size in largest))
            print("  " + ", ".join(f"{module} {import_ms(python, module):.0f} ms" for module in IMPORTS), flush=True)
    return int(base_mb > BOUND_MB)


if __name__ == "__main__":
    sys.exit(main())
