"""Import AI Factory's folders of results: each benchmark is an experiment of one job, each request a sample.

A benchmark is a folder with `run.json`, `summary.json` and `requests.jsonl`, or with one `requests_CLIENT.jsonl` for
each client where they were not merged; any of them may be missing, and the name of the folder is its id.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prony import __version__
from prony.app.interchange import import_folder
from prony.compat.ai_factory.exporter import ORIGIN
from prony.compat.ai_factory.request_summary import summary_of
from prony.errors import InputError
from prony.instruments.request_lines import Log, frame_of, place_requests, read_log
from prony.kinds.service.schema import ServiceWorkload
from prony.model.clients import ServiceFacts
from prony.model.device import Cpu, Device, Environment, Hardware, Software, State
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.load import Closed, Load
from prony.model.place import Place
from prony.model.recipe import Recipe
from prony.model.result import Failure, Origin, Phase, Repetition, Reported, ResultState
from prony.recipe import LoadedRecipe, loads
from prony.runner.folder import ResultFolder, write_frame, write_noun
from prony.store.bundle import EXPERIMENT, JOBS, MANIFEST, bundle_files
from prony.store.folder import JOB
from prony.store.store import Store

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


def _benchmarks_in(path: Path) -> list[Path]:
    """Return the folders of benchmarks: this one, or those inside of it or of its `results`; none where it is ours."""
    if not path.is_dir() or any((path / name).exists() for name in (EXPERIMENT, MANIFEST, JOB)):
        return []
    if _is_one(path):
        return [path]
    inside = path / RESULTS if (path / RESULTS).is_dir() else path
    return sorted(folder for folder in inside.iterdir() if folder.is_dir() and _is_one(folder))


def read_benchmark(folder: Path) -> Benchmark:
    """Read all of one; a file that is no JSON is refused, a line that is none is counted."""
    files = bundle_files(folder)
    if sum(path.stat().st_size for path in files) > _LARGEST_BYTES:
        raise InputError(f"{folder} holds more than 4 GiB", hint="import its parts one by one")
    logs = _logs(folder)
    run, summary = _document(folder / RUN), _document(folder / SUMMARY)
    log = read_log(logs)
    if not run and not summary and not log.lines:
        raise InputError(
            f"{folder} has no request, no summary and no run in it",
            hint="name a results folder of AI Factory that is not empty",
        )
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
        raise InputError(f"{path} is not JSON: {exc}", hint="the file may be cut short: copy it again") from exc
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object", hint="name the file that AI Factory wrote")
    return found


def _digest(folder: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


BY = "AI Factory"
# What its clients write where they count nothing.
_MADE_UP_INPUT = 5
_LATENCIES = {
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "avg": "mean",
    "min": "min",
    "max": "max",
    "std": "sd",
}


class AiFactoryImporter:
    """All benchmarks of a folder are read before the first is kept."""

    def fits(self, path: Path) -> bool:
        return bool(_benchmarks_in(path))

    def bring_in(self, store: Store, path: Path) -> tuple[Experiment, ...]:
        found = [read_benchmark(folder) for folder in _benchmarks_in(path)]
        return tuple(_import_benchmark(store, benchmark) for benchmark in found)


def _import_benchmark(store: Store, found: Benchmark) -> Experiment:
    with tempfile.TemporaryDirectory(prefix="prony-import-") as scratch:
        bundle = Path(scratch) / "bundle"
        experiment, job = _experiment(found)
        (bundle / JOBS).mkdir(parents=True)
        write_noun(bundle / EXPERIMENT, experiment)
        _write_result(bundle / JOBS / job.id, job, found)
        return import_folder(store, bundle)


# What was run


def _experiment(found: Benchmark) -> tuple[Experiment, Job]:
    loaded, notes = _recipe(found)
    recipe = loaded.recipe if loaded is not None else Recipe(name=_name(found), workload=_workload(found))
    users = len(found.run.get("clients") or ()) or recipe.load.users.concurrency
    load = Load(closed=Closed(concurrency=users), requests=max(len(found.log.lines), 1), warmup="none", repeats=1)
    labels = recipe.labels | {"benchmark_id": found.identity, "measured_by": _by(found)}
    # Where it ran is told by its machine; to run it again is to run it here.
    recipe = recipe.model_copy(update={"load": load, "labels": labels, "place": Place()})
    safe = re.sub(r"[^a-z0-9-]+", "-", found.identity.lower()).strip("-")[:40] or "benchmark"
    identity = f"{safe}-{found.digest[:6]}"
    began = _began(found)
    experiment = Experiment(
        id=identity,
        name=recipe.name,
        recipe=recipe,
        recipe_text=loaded.text if loaded is not None else "",
        dialect=loaded.dialect if loaded is not None else "",
        notes=notes,
        state=ExperimentState.COMPLETE if found.log.lines or _figures(found.summary) else ExperimentState.FAILED,
        created_at=began,
        ended_at=_end_time(found) or began,
        job_count=1,
    )
    return experiment, Job(
        id=f"{identity}-001", experiment_id=identity, name=recipe.name, workload=recipe.workload, load=load,
        limits=recipe.limits, labels=labels,
    )  # fmt: skip


def _recipe(found: Benchmark) -> tuple[LoadedRecipe | None, tuple[str, ...]]:
    """Return the recipe that `run.json` holds, as it was first written; none where it holds none that can be read.

    A rerun of AI Factory's nests the recipe of the run before inside its own: the innermost is what was written.
    """
    written = found.part("recipe")
    while isinstance(written.get("raw_data"), Mapping) and written["raw_data"]:
        written = written["raw_data"]
    if not written:
        return None, ("run.json has no recipe: what was run is known from its requests alone",)
    text = json.dumps(dict(written), indent=2)
    try:
        loaded = loads(text, "json", f"{found.identity}/run.json")
        if not isinstance(loaded.recipe.workload, ServiceWorkload):
            return None, ("the recipe in run.json loads no service",)
    except InputError as exc:
        return None, (f"the recipe in run.json cannot be read: {exc.message.splitlines()[0]}",)
    return loaded, loaded.notes


def _workload(found: Benchmark) -> ServiceWorkload:
    kind = found.part("service").get("type") or found.log.service_type or found.summary.get("service_type")
    return ServiceWorkload(kind="service", service=kind if isinstance(kind, str) and kind else "unknown")


def _name(found: Benchmark) -> str:
    name = found.part("service").get("name") or found.log.service_type or found.identity
    return re.sub(r"[^A-Za-z0-9._-]+", "-", str(name)).lstrip("._-")[:100] or "imported"


def _by(found: Benchmark) -> str:
    version = str(found.part("environment").get("framework_version") or "")
    return "Prony" if version.startswith("prony") else BY


def _began(found: Benchmark) -> datetime:
    if found.log.lines:
        return datetime.fromtimestamp(found.log.span_s[0], UTC)
    return _instant(found.run.get("created_at")) or datetime.fromtimestamp(0, UTC)


def _end_time(found: Benchmark) -> datetime | None:
    return datetime.fromtimestamp(found.log.span_s[1], UTC) if found.log.lines else None


def _instant(text: Any) -> datetime | None:
    try:
        told = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)


# What came out


def _write_result(folder: Path, job: Job, found: Benchmark) -> None:
    began = _began(found)
    made = ResultFolder.begin(folder, job, prony_version=__version__, started_at=began)
    made.write_environment(_environment(found))
    shutil.copytree(found.folder, folder / ORIGIN, ignore=shutil.ignore_patterns(".*"))
    service = found.part("service")
    facts = ServiceFacts(name=str(service.get("type") or found.log.service_type), notes=_notes(found))
    log = _drop_uncounted(found)
    made.update(service=facts, origin=_origin(found, log))
    if not found.log.lines:
        _finish_without_requests(made, found)
        return
    begins, ends, window = place_requests(log)
    write_frame(made.requests_part(0), frame_of(log, begins, ends))
    phase = Phase(begin_ns=window[0], end_ns=window[1], cpu_ns=0, count=len(log.lines))
    made.update(repetitions=(Repetition(index=0, started_at=began, phases={"measure": phase}),))
    made.finish(ResultState.COMPLETE, _end_time(found) or began, [])


def _finish_without_requests(made: ResultFolder, found: Benchmark) -> None:
    """Keep what its summary says as what it is: figures that somebody told."""
    figures = _figures(found.summary)
    count = found.summary.get("total_requests")
    if "e2e_ms.p50" in figures and isinstance(count, int) and count > 0:
        made.update(reported=Reported(by=_by(found), figures=figures, count=count, original=json.dumps(found.summary)))
        made.finish(ResultState.COMPLETE, _began(found), [])
        return
    message = "it has neither requests nor a summary of them"
    made.update(failure=Failure(code="no_requests", message=message, phase="import", whose="input"))
    made.finish(ResultState.FAILED, _began(found), [])


def _figures(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return what a summary says under the names of our metrics; its rate counts failures, ours does not."""
    told = summary.get("latency_s")
    latencies = told if isinstance(told, Mapping) else {}
    found = {f"e2e_ms.{ours}": _number(latencies.get(theirs), 1000) for theirs, ours in _LATENCIES.items()}
    share = _number(summary.get("success_rate"), 0.01)
    rate = _number(summary.get("requests_per_second"))
    if share is not None:
        found |= {"error_rate.mean": 1 - share, "throughput_per_s.p50": None if rate is None else rate * share}
    found["output_tokens_per_s.p50"] = _number(summary.get("tokens_per_second"))
    return {key: value for key, value in found.items() if value is not None}


def _number(value: Any, factor: float = 1.0) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value * factor if is_number else None


def _origin(found: Benchmark, log: Log) -> Origin:
    is_ours = _by(found) == "Prony"
    return Origin(
        by=_by(found),
        identity=found.identity,
        has_whole_seconds=bool(log.lines) and log.has_whole_seconds,
        has_own_processes=not is_ours,
        unread=log.unread,
        timeless=log.timeless,
        differs=tuple(_differences(found)),
        left_out=tuple(_left_out(found)),
    )


def _notes(found: Benchmark) -> dict[str, str]:
    """Return what its summary says, word for word; Prony's own numbers are computed from the requests."""
    told = {name: value for name, value in found.summary.items() if isinstance(value, int | float | str)}
    return {f"summary.{name}": str(value) for name, value in told.items()}


def _differences(found: Benchmark) -> Iterator[str]:
    """Say which figures of its summary are not those of its requests."""
    if not found.log.lines:
        return
    ours = summary_of(found.log)
    for name in ("total_requests", "successful_requests", "success_rate", "requests_per_second"):
        yield from _differs(name, found.summary.get(name), ours.get(name))
    theirs = found.summary.get("latency_s")
    for name, value in ours["latency_s"].items():
        yield from _differs(f"latency_s.{name}", theirs.get(name) if isinstance(theirs, Mapping) else None, value)


def _differs(name: str, theirs: Any, ours: Any) -> Iterator[str]:
    is_told = isinstance(theirs, int | float) and not isinstance(theirs, bool)
    if is_told and (ours is None or not math.isclose(theirs, ours, rel_tol=1e-6, abs_tol=1e-9)):
        truth = "nothing" if ours is None else f"{ours:g}"
        yield f"{name} is {theirs:g} in its summary but {truth} in its requests"


def _left_out(found: Benchmark) -> Iterator[str]:
    """Name the columns that its clients fill with what they did not count."""
    if _by(found) == "Prony":
        return
    inputs = {line.input_tokens for line in found.log.lines if line.succeeded}
    if found.log.service_type == "vllm" and inputs == {_MADE_UP_INPUT}:
        yield "input_tokens"
    client = found.part("recipe").get("client")
    if isinstance(client, Mapping) and client.get("type") == "ollama_smoke":
        yield "output_tokens"


def _drop_uncounted(found: Benchmark) -> Log:
    """Return the log without what nobody counted."""
    nothing: dict[str, Any] = dict.fromkeys(_left_out(found))
    if not nothing:
        return found.log
    return replace(found.log, lines=tuple(replace(line, **nothing) for line in found.log.lines))


def _environment(found: Benchmark) -> Environment:
    """Describe a machine of which next to nothing is known; Prony's own export tells all of it."""
    told = found.part("environment")
    target = str(found.run.get("target") or told.get("target") or "unknown")
    name = str(told.get("device") or found.part("service").get("hostname") or target)
    hardware, software = _machine(told)
    device = Device(
        name=name,
        hardware_id=f"ai-factory-{re.sub(r'[^a-z0-9]+', '-', target.lower())}"[:64],
        software_id="ai-factory-unknown",
        hardware=hardware,
        software=software,
    )
    return Environment(device=device, state=State(taken_at=_began(found)), clock={})


def _machine(told: Mapping[str, Any]) -> tuple[Hardware, Software]:
    try:
        return Hardware.read(told["hardware"]), Software.read(told["software"])
    except (KeyError, ValidationError):
        unknown = Software(os="unknown", kernel="unknown", python="unknown", prony="none")
        return Hardware(cpu=Cpu(architecture="unknown")), unknown
