"""Imports only go down, the engine's child needs next to nothing, and a command starts fast."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prony.model.experiment import Experiment, ExperimentState
from prony.recipe import loads
from prony.store.home import Home
from prony.store.store import Store

from .house import ROOT, modules

BARE = Path(__file__).with_name("bare_import.py")
SLOW = {"numpy", "pydantic", "sqlalchemy", "rich", "polars", "scipy", "matplotlib", "httpx", "yaml", "alembic"}
CHILD = sorted(
    name
    for name in modules()
    if name.startswith(("prony.runner.child", "prony.plugins.engines"))
    or name in ("prony.ports.engine", "prony.errors", "prony.error_codes", "prony.instruments.memory")
)
RECIPE = "name: small\nworkload: {kind: model, model: zoo:tiny, engine: onnxruntime}"


def test_the_import_contracts_of_pyproject_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


def test_the_engines_side_imports_where_only_numpy_is_installed() -> None:
    assert len(CHILD) > 20
    done = subprocess.run([sys.executable, str(BARE), *CHILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_the_child_may_not_import_is_refused() -> None:
    done = subprocess.run([sys.executable, str(BARE), "prony.runner.host"], capture_output=True, text=True, check=False)
    assert "pydantic does not exist" in done.stderr


@pytest.mark.parametrize("module", ["prony", "prony.cli.main", "prony.ports.plugins", "prony.errors"])
def test_importing_it_imports_nothing_slow(module: str) -> None:
    assert imported(["-c", f"import {module}"]) & SLOW == set()


def test_the_client_imports_no_database_and_no_arrays() -> None:
    """An agent and every command that asks a server import it."""
    assert imported(["-c", "import prony.client"]) & SLOW == {"pydantic"}


def test_help_and_list_import_nothing_slow(prony_home: Path) -> None:
    with Store.open(Home(prony_home)) as store:
        recipe = loads(RECIPE).recipe
        now = datetime.now(UTC)
        ended = Experiment(
            id="e1",
            name="small",
            recipe=recipe,
            state=ExperimentState.FAILED,
            created_at=now,
            ended_at=now,
            job_count=1,
        )
        store.save_experiment(ended)
    assert imported(["-m", "prony", "--help"]) & SLOW == set()
    assert imported(["-m", "prony", "list"], shows="e1") & SLOW == set()


def imported(arguments: list[str], shows: str = "") -> set[str]:
    """Return the packages that an interpreter imports while it does this."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shows in done.stdout
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert "prony" in names
    return {name.partition(".")[0] for name in names}
