"""Execute a script's job and read its result, for tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

from prony.app.runner import run_here
from prony.load.processes import ClientProcesses
from prony.model.event import Event
from prony.model.job import Job
from prony.recipe import loads
from prony.store.folder import FolderContents, read_nouns
from prony.store.home import Home


def job_of(folder: Path, text: str, measure: dict[str, Any] | None = None, **workload: Any) -> Job:
    """Return the job of a Python script that lies in a folder of its own."""
    scripts = folder / "scripts"
    scripts.mkdir(exist_ok=True)
    (scripts / "script.py").write_text(text)
    limits = workload.pop("limits", {})
    work = {"kind": "script", "command": [sys.executable, "script.py"], "directory": str(scripts)} | workload
    written = {"name": "told", "workload": work, "measure": measure or {"repeats": 1}, "limits": limits}
    return loads(json.dumps(written), "json", "the test").jobs("x1")[0]


def executed(job: Job, out: Path, events: list[Event] | None = None) -> FolderContents:
    """Execute a job; return its folder."""
    heard = events if events is not None else []
    run_here([job], out, Home(out.parent / "home").create(), on_event=heard.append, clients=ClientProcesses())
    return read_nouns(out)


def samples(contents: FolderContents) -> pl.DataFrame:
    return pl.read_parquet(contents.path / "samples.parquet")


def values(contents: FolderContents, name: str) -> list[float]:
    found: list[float] = samples(contents).filter(pl.col("name") == name)["value"].to_list()
    return found
