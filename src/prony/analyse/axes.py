"""Look up a job's value for a row or a column: a fact, a setting or a label."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prony.model.experiment_data import Entry

NOTHING = "–"


def axis_value(entry: Entry, word: str) -> str | None:
    """Return what the job has under this word; None where it has nothing."""
    if word in _WORDS:
        found = _WORDS[word](entry)
        return None if found in (None, "") else str(found)
    if word.startswith("labels."):
        name = word.removeprefix("labels.")
        return entry.job.labels.get(name, entry.environment.labels.get(name))
    if word in entry.job.cell:
        return str(entry.job.cell[word])
    document = entry.job.model_dump(mode="json", include={"workload", "load", "measure"})
    for path in (word, f"workload.{word}", f"load.{word}"):
        value = _at(document, path.split("."))
        if value is not None:
            return str(value)
    return None


def settings_of(entry: Entry) -> dict[str, str]:
    """Return everything in which two jobs may differ, by its path."""
    document = entry.job.model_dump(mode="json", include={"workload", "load", "measure"})
    for key in ("repeats", "seeds", "slo"):
        document["load"].pop(key, None)
    facts = {word: axis_value(entry, word) or NOTHING for word in ("device", "version")}
    return facts | _flat(document)


def _flat(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, inner in value.items():
            found |= _flat(inner, f"{path}.{key}" if path else str(key))
        return found
    return {} if value is None else {path.removeprefix("workload."): str(value)}


def _at(document: Any, keys: list[str]) -> Any:
    for key in keys:
        if not isinstance(document, Mapping) or key not in document:
            return None
        document = document[key]
    return None if isinstance(document, Mapping) else document


def _of_model(name: str) -> Callable[[Entry], Any]:
    return lambda entry: getattr(entry.job.workload, name, None)


def _device(entry: Entry) -> str:
    return entry.environment.device.name


def _precision(entry: Entry) -> str | None:
    told = entry.result.effective
    if told is not None:
        return told.precision
    asked: str | None = getattr(entry.job.workload, "precision", None)
    return asked


def _version(entry: Entry) -> str | None:
    if entry.result.effective is not None:
        return entry.result.effective.engine_version
    return entry.result.service.version if entry.result.service is not None else None


def _concurrency(entry: Entry) -> int | None:
    is_closed = entry.job.workload.section == "load" and entry.job.load.way == "closed"
    return entry.job.load.users.concurrency if is_closed else None


# Words that people use, and where they lead.
_WORDS: dict[str, Callable[[Entry], Any]] = {
    "device": _device,
    "engine": lambda entry: entry.job.workload.tool,
    "model": lambda entry: entry.job.workload.subject,
    "service": lambda entry: entry.job.workload.subject,
    "unit": _of_model("unit"),
    "precision": _precision,
    "batch": _of_model("batch_size"),
    "threads": _of_model("threads"),
    "concurrency": _concurrency,
    "rate": lambda entry: f"{entry.job.load.open.rate:g}" if entry.job.load.open is not None else None,
    "version": _version,
    "name": lambda entry: entry.job.name,
    "experiment": lambda entry: entry.job.experiment_id,
    "cpu": lambda entry: entry.environment.device.hardware.cpu.model,
    "gpu": lambda entry: ", ".join(gpu.name for gpu in entry.environment.device.hardware.gpus) or None,
}
WORDS = tuple(_WORDS)
