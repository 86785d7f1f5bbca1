"""Destination for Elasticsearch and OpenSearch, by the bulk API that both have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from prony.errors import InputError, TransportError
from prony.model.estimate import headline_of, verdict_on
from prony.model.experiment import Experiment
from prony.plugins.destinations.web_api import PASSING_STATUS, WebApi, check_destination_url
from prony.ports.destination import ExportedJob
from prony.ports.metric_titles import metric_title

_PREFIX = "prony"
# Elasticsearch takes 100 MB in one request; a tenth of that is quick enough and spares its memory.
_BULK_BYTES = 8 * 2**20


class Elasticsearch:
    """Three indices: `prony-jobs`, `prony-numbers`, `prony-logs`. A path in the address replaces `prony`."""

    def __init__(self, url: str) -> None:
        path = urlsplit(check_destination_url(url, "Elasticsearch")).path.strip("/")
        self._prefix = path.rpartition("/")[2] or _PREFIX
        if self._prefix != self._prefix.lower():
            raise InputError(f"{self._prefix!r} cannot be the name of an index", hint="use small letters")
        self._url = url.rstrip("/").removesuffix(f"/{self._prefix}") if path else url

    def send(self, experiment: Experiment, jobs: Iterable[ExportedJob]) -> str:
        documents = chain.from_iterable(self._documents(experiment, job) for job in jobs)
        with WebApi(self._url, "Elasticsearch", key_scheme="ApiKey") as api:
            for body in _in_bulks(documents):
                _check_items(api.ask("POST", "_bulk", content=body, headers={"Content-Type": "application/x-ndjson"}))
            return f"{api.base}/{self._prefix}-*/_search?q=experiment_id:{experiment.id}"

    def _documents(self, experiment: Experiment, job: ExportedJob) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield index, id and document. The ids are the same for the same job: a repeat replaces."""
        about = _about(experiment, job)
        job_id = job.entry.job.id
        yield f"{self._prefix}-jobs", job_id, about | _outcome(job)
        for key, document in _numbers(job):
            yield f"{self._prefix}-numbers", f"{job_id}:{key}", about | document
        for number, document in enumerate(_lines(job.log)):
            yield f"{self._prefix}-logs", f"{job_id}:{number}", about | document


def _about(experiment: Experiment, job: ExportedJob) -> dict[str, Any]:
    """Return what every document of a job says."""
    entry = job.entry
    return {
        "@timestamp": (entry.result.ended_at or entry.result.started_at).isoformat(),
        "experiment_id": experiment.id,
        "recipe": experiment.name,
        "job_id": entry.job.id,
        "title": entry.job.title,
        "kind": entry.job.workload.kind,
        "device": entry.environment.device.name,
        # As lines of text: keys of people would make a field each, and an index holds a thousand.
        "labels": [f"{name}={value}" for name, value in {**entry.environment.labels, **entry.job.labels}.items()],
        "cell": [f"{path}={value}" for path, value in entry.job.cell.items()],
        "commit": entry.job.git.commit if entry.job.git else None,
        "traceparent": entry.job.traceparent or None,
    }


def _outcome(job: ExportedJob) -> dict[str, Any]:
    result, summary = job.entry.result, job.entry.summary
    failure = result.failure
    return {
        "state": result.state.value,
        "verdict": summary.verdict.grade.value,
        "reasons": [reason.text for reason in summary.verdict.reasons],
        "failure": None if failure is None else failure.model_dump(include={"code", "message", "hint", "whose"}),
        "headline": headline_of(summary, job.entry.job.workload.kind),
    }


def _numbers(job: ExportedJob) -> Iterator[tuple[str, dict[str, Any]]]:
    summary = job.entry.summary
    for key, estimate in job.estimates.items():
        yield (
            key,
            estimate.model_dump()
            | {
                "metric": key,
                "name": metric_title(key),
                "verdict": verdict_on(summary, key).grade.value,
            },
        )


def _lines(log: str) -> Iterator[dict[str, Any]]:
    for line in log.splitlines():
        at, _, rest = line.partition(" ")
        source, _, text = rest.partition(" ")
        yield {"@timestamp": at, "source": source, "text": text}


def _in_bulks(documents: Iterable[tuple[str, str, dict[str, Any]]]) -> Iterator[bytes]:
    """Yield bodies of the bulk API, each of a bounded size."""
    lines: list[bytes] = []
    size = 0
    for index, identity, document in documents:
        action = {"index": {"_index": index, "_id": identity}}
        pair = f"{json.dumps(action)}\n{json.dumps(document)}\n".encode()
        if lines and size + len(pair) > _BULK_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
        lines.append(pair)
        size += len(pair)
    if lines:
        yield b"".join(lines)


def _check_items(response: Any) -> None:
    """Raise where one document was not taken: the answer as a whole is good even then."""
    found = response.json()
    for item in found["items"] if found["errors"] else ():
        done = item["index"]
        if "error" in done:
            said = f"Elasticsearch did not take a document of {done['_index']}: {json.dumps(done['error'])[:300]}"
            kind = TransportError if done["status"] in PASSING_STATUS else InputError
            raise kind(said, hint="check the mapping of the index, or use another index")
