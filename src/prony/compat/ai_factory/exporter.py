"""Write a load as AI Factory's two folders: `results/ID` with what was measured, `reports/ID` with what is said of it.

Its format holds one run, so each run of a job is a benchmark of its own there: `ID` is the job's id, and the number of
the run behind it where there are several. What it has no word for stands under `prony`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from prony import __version__
from prony.compat.ai_factory.exporter_files import logs_summary, metrics_text, write_report
from prony.compat.ai_factory.request_summary import summary_of
from prony.errors import NotFoundError
from prony.instruments.request_lines import Log, read_log
from prony.instruments.requests import OK
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.result import Repetition
from prony.ports.exporter import ExportedLoad
from prony.report.plots.load_series import requests_of

if TYPE_CHECKING:
    from prony.kinds.service.schema import ServiceWorkload

ORIGIN = "origin"  # of a result folder that was imported: its files as they came
DIALECT = "ai-factory"
_MOST_CLIENTS = 10_000
_TYPES = {
    "openai-chat": "vllm", "openai-completions": "vllm", "openai-embeddings": "vllm", "s3": "minio", "http": "nginx",
}  # fmt: skip
# Their clients write SET and GET, PUT and GET, INSERT and QUERY; those of the others have small letters.
_IN_CAPITALS = {"redis", "minio", "qdrant"}
# Of a service and of its clients: what the recipe says of the cluster they ran on.
_OF_A_JOB = ("partition", "num_gpus", "time_limit", "account")
_OWN = {"redis", "postgres", "chroma", "vllm", "ollama", "nginx", "minio", "qdrant"}


def write(load: ExportedLoad, to: Path) -> list[Path]:
    """Write both folders of every run that has requests."""
    entry = load.entry
    if (entry.folder / ORIGIN).is_dir():
        return _as_it_came(load, to)
    frame = requests_of(entry)
    if frame is None:
        raise NotFoundError(f"the requests of job {entry.job.id} cannot be read", hint=f"look in {entry.folder}")
    known = {one.index: one for one in entry.result.repetitions}
    parts = [part for part in frame.partition_by("repetition", maintain_order=True) if part["repetition"][0] in known]
    made: list[Path] = []
    for part in parts:
        run = known[int(part["repetition"][0])]
        identity = entry.job.id if len(parts) == 1 else f"{entry.job.id}-{run.index + 1}"
        folder = to / "results" / identity
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write_requests(folder / "requests.jsonl", part, entry, run)
        log = read_log([folder / "requests.jsonl"])
        (folder / "run.json").write_text(_json(_run_of(load, run, identity)))
        _copy_logs(entry.folder / "logs", folder / "logs")
        made += _written(load, to, identity, log)
    return made


def _workload(job: Job) -> ServiceWorkload:
    return cast("ServiceWorkload", job.workload)  # only loads are written in this format


def service_type(entry: Entry) -> str:
    """Return the nearest of its words for what was loaded."""
    workload = _workload(entry.job)
    if workload.service in _OWN:
        return str(workload.service)
    driver = workload.driver or ""
    return _TYPES.get(driver, driver or "unknown")


def _written(load: ExportedLoad, to: Path, identity: str, log: Log) -> list[Path]:
    """Write what is computed from the requests that were written; return the files that a person opens first."""
    entry = load.entry
    folder = to / "results" / identity
    summary = summary_of(log, service_type(entry)) | {"prony": _verdict_fields(entry)}
    if not (folder / "summary.json").exists():  # one that came with it is left as it came
        (folder / "summary.json").write_text(_json(summary))
    run = json.loads((folder / "run.json").read_text()) if (folder / "run.json").exists() else {}
    report = write_report(to / "reports" / identity, load, identity, summary, run, log)
    clients = run.get("clients")
    count = len(clients) if isinstance(clients, list) else None
    (report.parent / "metrics.txt").write_text(metrics_text(identity, summary, count))
    (report.parent / "logs_summary.json").write_text(logs_summary(folder / "logs"))
    return [folder / "run.json", folder / "requests.jsonl", folder / "summary.json", report]


def _as_it_came(load: ExportedLoad, to: Path) -> list[Path]:
    """Give back what was imported, byte for byte, and compute the rest anew."""
    entry = load.entry
    # It came from elsewhere, and may be no name of a folder.
    identity = re.sub(r"[^A-Za-z0-9._-]+", "-", entry.job.labels.get("benchmark_id", "")).lstrip(".-") or entry.job.id
    folder = to / "results" / identity
    shutil.copytree(entry.folder / ORIGIN, folder, dirs_exist_ok=True)
    logs = sorted(folder.glob("requests*.jsonl"))
    if not logs:
        return [folder / "summary.json"]
    return _written(load, to, identity, read_log(logs))


def _write_requests(path: Path, part: Any, entry: Entry, run: Repetition) -> None:
    """Write a header and a line for each request; stamps are of the epoch, to the microsecond."""
    phase = run.phases["measure"]
    began = run.started_at.timestamp()
    kind = service_type(entry)
    word = str.upper if kind in _IN_CAPITALS else str
    header = {"benchmark_id": entry.job.id, "service_type": kind, "test_start": run.started_at.isoformat()}
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(header) + "\n")
        for row in part.iter_rows(named=True):
            start = round(began + (row["begin_ns"] - phase.begin_ns) / 1e9, 6)
            latency = round((row["end_ns"] - row["begin_ns"]) / 1e9, 9)
            told: dict[str, Any] = {
                "request_id": row["index"], "client": row["client"], "timestamp_start": start,
                "timestamp_end": round(start + latency, 6), "latency_s": latency, "success": row["cause"] == OK,
                "service_type": kind, "operation_type": word(row["operation"]), "operation": word(row["operation"]),
                "http_status": row["status"] or None,
            }  # fmt: skip
            told |= {} if row["cause"] == OK else {"error": row["cause"]}
            told |= {name: row[name] for name in ("input_tokens", "output_tokens") if row[name] is not None}
            told |= {} if row["bytes_in"] is None else {"bytes": row["bytes_in"]}
            told |= {"items": row["items"]} if row["items"] != 1 else {}
            file.write(json.dumps(told) + "\n")


def _run_of(load: ExportedLoad, run: Repetition, identity: str) -> dict[str, Any]:
    """Return `run.json`: what ran, where and from when to when. A key that names no secret has no secret in it."""
    entry = load.entry
    service, sends = (_section(load, name) for name in ("service", "client"))
    job, result, device = entry.job, entry.result, entry.environment.device
    workload = _workload(job)
    facts = result.service
    phase = run.phases["measure"]
    ended = run.started_at + timedelta(microseconds=(phase.end_ns - phase.begin_ns) // 1000)
    recipe = _recipe_of(load)
    clients = min(_clients(load), _MOST_CLIENTS)
    client = {"job_id": job.id, "hostname": device.name, "command": workload.driver or workload.service}
    client |= {name: sends.get(name) for name in _OF_A_JOB}
    git = entry.environment.git
    return {
        "benchmark_id": identity,
        "created_at": run.started_at.isoformat().replace("+00:00", "Z"),
        "ended_at": ended.isoformat().replace("+00:00", "Z"),
        "git_commit": git.commit if git is not None else None,
        "recipe_hash": hashlib.sha256(json.dumps(recipe["raw_data"], sort_keys=True).encode()).hexdigest(),
        "recipe": recipe,
        "target": "local",
        "service": {
            "name": job.name,
            "type": service_type(entry),
            "job_id": job.id,
            "hostname": device.name,
            "image": workload.settings.get("image") or service.get("image"),
            "port": None,
            "command": " ".join(facts.command) if facts is not None else None,
            "version": facts.version if facts is not None else None,
            "env": service.get("env") or service.get("environment"),
            **{name: service.get(name) for name in _OF_A_JOB},
        },
        "clients": [{"name": f"client-{job.name}-{number + 1}"} | client for number in range(clients)],
        "environment": {"target": "local", "framework_version": f"prony {__version__}", "device": device.name,
                        "hardware": device.hardware.model_dump(mode="json"),
                        "software": device.software.model_dump(mode="json")},
    }  # fmt: skip


def _written_recipe(load: ExportedLoad) -> Mapping[str, Any]:
    """Return the recipe where it is one of AI Factory's; empty where it is another's."""
    return load.written if load.dialect == DIALECT else {}


def _section(load: ExportedLoad, name: str) -> Mapping[str, Any]:
    """Return a section of the recipe as it was written; empty where there is none."""
    found = _written_recipe(load).get(name)
    return found if isinstance(found, Mapping) else {}


def _clients(load: ExportedLoad) -> int:
    """Return how many clients there were; one of them may be several users."""
    settings = _section(load, "client").get("settings")
    each = settings.get("concurrent_requests", 1) if isinstance(settings, Mapping) else 1
    return max(load.entry.job.load.users.concurrency // each, 1)


def _recipe_of(load: ExportedLoad) -> dict[str, Any]:
    """Return the four sections as they were written, or else the job in them; `raw_data` is what it can be run from
    again."""
    job, workload = load.entry.job, _workload(load.entry.job)
    kept = job.model_dump(mode="json", include={"name", "workload", "load", "limits", "labels"}, exclude_defaults=True)
    kept["workload"]["kind"] = workload.kind
    if written := _written_recipe(load):
        sections = {name: dict(_section(load, name)) for name in ("configuration", "service", "client", "benchmarks")}
        sections["benchmarks"]["num_clients"] = _clients(load)
        return sections | {"raw_data": dict(written), "prony": kept}
    return {
        "configuration": {"target": "local"},
        "service": {"type": service_type(load.entry), "name": job.name, "settings": workload.settings},
        "client": {"type": workload.driver, "settings": workload.options},
        "benchmarks": {"num_clients": job.load.users.concurrency, "metrics": []},
        "raw_data": kept,
    }


def _verdict_fields(entry: Entry) -> dict[str, Any]:
    """Return what its format has no words for: the verdict, and the numbers with their intervals."""
    summary = entry.summary
    return {
        "experiment_id": entry.job.experiment_id,
        "job_id": entry.job.id,
        "verdict": summary.verdict.model_dump(mode="json"),
        "estimates": {key: one.model_dump(mode="json") for key, one in summary.estimates.items()},
    }


def _copy_logs(logs: Path, to: Path) -> None:
    to.mkdir(exist_ok=True)
    if logs.is_dir():
        shutil.copytree(logs, to, dirs_exist_ok=True)


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
