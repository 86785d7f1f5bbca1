"""Read the files of AI Factory's benchmarks.

A benchmark is a folder with `run.json`, `summary.json` and `requests.jsonl`, or with one `requests_CLIENT.jsonl` for
each client where they were not merged; any of them may be missing, and the name of the folder is its id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.instruments.request_lines import Log, read_log
from prony.store.bundle import EXPERIMENT
from prony.store.folder import JOB
from prony.store.manifest import MANIFEST, files_of

RUN, SUMMARY, RESULTS = "run.json", "summary.json", "results"
_LARGEST_BYTES = 4 * 2**30


@dataclass(frozen=True)
class Benchmark:
    """`run` and `summary` are empty where their file is missing; `digest` is of every file."""

    folder: Path
    identity: str
    run: Mapping[str, Any]
    summary: Mapping[str, Any]
    log: Log
    digest: str

    def part(self, name: str) -> Mapping[str, Any]:
        """Return a map within `run.json`, an empty one where there is none."""
        found = self.run.get(name)
        return found if isinstance(found, Mapping) else {}


def benchmarks_in(path: Path) -> list[Path]:
    """Return the folders of benchmarks: this one, or those inside of it or of its `results`; none where it is ours."""
    if not path.is_dir() or any((path / name).exists() for name in (EXPERIMENT, MANIFEST, JOB)):
        return []
    if _is_one(path):
        return [path]
    inside = path / RESULTS if (path / RESULTS).is_dir() else path
    return sorted(folder for folder in inside.iterdir() if folder.is_dir() and _is_one(folder))


def read_benchmark(folder: Path) -> Benchmark:
    """Read all of one; a file that is no JSON is refused, a line that is none is counted."""
    files = files_of(folder)
    if sum(path.stat().st_size for path in files) > _LARGEST_BYTES:
        raise InputError(f"{folder} holds more than 4 GiB", hint="import its parts one by one")
    logs = _logs(folder)
    run, summary = _document(folder / RUN), _document(folder / SUMMARY)
    log = read_log(logs)
    if not run and not summary and not log.lines:
        raise InputError(f"{folder} has no request, no summary and no run in it", hint=f"is {RUN} empty?")
    identity = run.get("benchmark_id")
    named = identity if isinstance(identity, str) and identity else folder.name
    return Benchmark(folder, named, run, summary, log, _digest(folder, files))


def _is_one(folder: Path) -> bool:
    return not (folder / JOB).exists() and (
        (folder / RUN).is_file() or (folder / SUMMARY).is_file() or bool(_logs(folder))
    )


def _logs(folder: Path) -> list[Path]:
    """Return the merged file, or those of the clients."""
    merged = folder / "requests.jsonl"
    return [merged] if merged.is_file() else sorted(folder.glob("requests_*.jsonl"))


def _document(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{path} is no JSON: {exc}", hint="was it written to its end?") from exc
    if not isinstance(found, dict):
        raise InputError(f"{path} is no JSON object")
    return found


def _digest(folder: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
