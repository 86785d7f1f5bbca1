"""Prony as a user has it: its commands, in a home of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prony.app.experiment_data import gather_results
from prony.app.results import with_runs
from prony.model.experiment_data import Entry
from prony.store.home import Home
from prony.store.store import Store


class Product:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = os.environ | {"PRONY_HOME": str(folder / "home")}

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "prony", *words]
        return subprocess.run(
            command, env=self._environment, cwd=self.folder, capture_output=True, text=True, check=False
        )

    def ask(self, *words: str) -> dict[str, Any]:
        """Return what a command says as JSON; one that failed ends the benchmark with its own words."""
        done = self.call(*words, "--json")
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            found = {}
        if not found or "error" in found:
            sys.exit(f"prony {' '.join(words)} exited with {done.returncode}:\n{done.stdout}{done.stderr[-2000:]}")
        return found

    def run(self, recipe: Mapping[str, Any]) -> dict[str, Any]:
        """Run a recipe; return the report of its experiment."""
        path = self.folder / f"{recipe['name']}.json"
        path.write_text(json.dumps(recipe), encoding="utf-8")
        return self.ask("run", str(path))

    def entry(self, experiment_id: str) -> Entry:
        """Return the one result of an experiment."""
        with Store.open(Home(self.folder / "home")) as store:
            (entry,) = gather_results(store, experiment_id).entries
            return with_runs(entry)
