"""What every destination does with an experiment, asked of a real MLflow and of a stand-in for Elasticsearch."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

import pytest
from store.histories import fill, numbers

from prony.app.destinations import LOG_BYTES, send_experiment
from prony.app.experiment_data import read_experiment_data
from prony.errors import NotFoundError, TransportError
from prony.model.experiment_data import ExperimentData
from prony.model.log import LogPiece
from prony.model.result import Failure, ResultState
from prony.plugins.destinations import elasticsearch
from prony.ports import plugins
from prony.store.home import Home
from prony.store.store import Store
from servers.bulk_index import BulkIndex, bulk_index
from servers.mlflow import mlflow_server
from servers.ports import free_port

LOG = "2026-01-01T00:00:00Z prony started\n2026-01-01T00:00:01Z run-0000.err a line with ümläuts\n"


@dataclass(frozen=True)
class Known:
    """What a destination has of a job: its numbers, its state and its log."""

    numbers: dict[str, float]
    state: str
    log: str


@dataclass(frozen=True)
class Place:
    address: str
    read: Callable[[str], list[Known]]  # of an experiment, in the order of its jobs


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("home")).create()


@pytest.fixture(scope="module")
def data(home: Home) -> ExperimentData:
    """An experiment of a real store."""
    with Store.open(home) as store:
        (job,) = fill(store, numbers(1))
        return read_experiment_data(store, job.experiment_id)


@pytest.fixture(scope="module")
def index() -> Iterator[BulkIndex]:
    with bulk_index() as made:
        yield made


@pytest.fixture(scope="module", params=["elasticsearch", pytest.param("mlflow", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if request.param == "elasticsearch":
        found: BulkIndex = request.getfixturevalue("index")
        yield Place(found.address(), lambda experiment_id: read_index(found, experiment_id))
        return
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as url:
        yield Place(f"mlflow+{url}", lambda experiment_id: read_mlflow(url, experiment_id))


def read_index(index: BulkIndex, experiment_id: str) -> list[Known]:
    jobs = [one for one in index.documents["prony-jobs"].values() if one["experiment_id"] == experiment_id]
    return [
        Known(
            {
                one["metric"]: one["value"]
                for one in index.documents["prony-numbers"].values()
                if one["job_id"] == job["job_id"]
            },
            job["state"],
            "".join(
                f"{line['@timestamp']} {line['source']} {line['text']}\n"
                for line in index.documents["prony-logs"].values()
                if line["job_id"] == job["job_id"]
            ),
        )
        for job in jobs
    ]


def read_mlflow(url: str, experiment_id: str) -> list[Known]:
    asked = {"experiment_ids": ["1"], "filter": f"tags.`prony.experiment` = '{experiment_id}'"}
    return [
        Known(
            {one["key"]: one["value"] for one in run["data"]["metrics"] if not one["key"].endswith((".low", ".high"))},
            {one["key"]: one["value"] for one in run["data"]["tags"]}["prony.state"],
            get(url, f"get-artifact?path=job.log&run_uuid={run['info']['run_id']}").decode(),
        )
        for run in json.loads(get(url, "api/2.0/mlflow/runs/search", asked)).get("runs", [])
    ]


def get(url: str, path: str, body: dict[str, Any] | None = None) -> bytes:
    content = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{url}/{path}", content, {"Content-Type": "application/json"}), timeout=60) as answer:
        found: bytes = answer.read()
        return found


def whole_log(job_id: str, name: str, offset: int) -> LogPiece:
    assert name == "logs/job.log"
    return LogPiece(LOG.encode()[offset:], len(LOG.encode()), ended=True)


def no_log(job_id: str, name: str, offset: int) -> LogPiece:
    raise NotFoundError("none")


def test_numbers_state_and_log_arrive_and_a_repeat_adds_nothing(place: Place, data: ExperimentData) -> None:
    where = send_experiment(place.address, data, whole_log)
    first = place.read(data.experiment.id)
    assert send_experiment(place.address, data, whole_log) == where
    assert place.read(data.experiment.id) == first
    (entry,), (known,) = data.entries, first
    assert known.numbers == {
        key: pytest.approx(one.value) for key, one in entry.summary.estimates.items() if math.isfinite(one.value)
    }
    assert len(known.numbers) < len(entry.summary.estimates), "one run has no spread, and JSON no NaN"
    assert (known.state, known.log) == ("complete", LOG)


def test_a_failed_job_takes_the_place_of_what_was_sent_of_it(place: Place, data: ExperimentData) -> None:
    failure = Failure(code="timeout", message="it took too long " + "x" * 20_000)
    failed = data.entries[0].result.model_copy(update={"state": ResultState.FAILED, "failure": failure})
    entry = data.entries[0].model_copy(update={"result": failed})
    send_experiment(place.address, data.model_copy(update={"entries": (entry,)}), no_log)
    (known,) = place.read(data.experiment.id)
    assert known.state == "failed"


@pytest.mark.parametrize("name", sorted(plugins.find_plugins(plugins.DESTINATIONS)))
def test_nobody_there_is_trouble_that_may_pass(name: str, data: ExperimentData) -> None:
    with pytest.raises(TransportError, match="does not answer") as caught:
        send_experiment(f"{name}+http://me:sEcReT@127.0.0.1:{free_port()}", data, no_log)
    assert "sEcReT" not in str(caught.value)


def test_a_long_log_is_sent_from_its_end_in_whole_lines(index: BulkIndex, data: ExperimentData) -> None:
    lines = "".join(f"2026-01-01T00:00:00Z prony line {number}\n" for number in range(40_000)).encode()
    assert len(lines) > LOG_BYTES

    def read_text(job_id: str, name: str, offset: int) -> LogPiece:
        return LogPiece(lines[offset : offset + 2**18], min(offset + 2**18, len(lines)), ended=False)

    send_experiment(index.address("/long"), data, read_text)
    texts = [line["text"] for line in index.documents["long-logs"].values()]
    assert texts[-1] == "line 39999"
    assert len(texts) > 20_000
    assert all(text.startswith("line ") for text in texts)


def test_many_documents_go_in_several_requests(
    index: BulkIndex, data: ExperimentData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elasticsearch, "_BULK_BYTES", 1000)
    before = index.requests
    send_experiment(index.address("/cut", user="a-key@"), data, whole_log)
    assert index.requests - before > 2
    assert index.authorizations[-1] == "ApiKey a-key"
    assert len(index.documents["cut-numbers"]) == len(index.documents["prony-numbers"])


def test_the_command_sends_to_a_destination_by_its_name(index: BulkIndex, data: ExperimentData, home: Home) -> None:
    environment = {"PRONY_HOME": str(home.root), "PRONY_EXPORT_TO": index.address("/by-name"), "PATH": ""}
    command = [sys.executable, "-m", "prony", "export", data.experiment.id, "--to", "elasticsearch"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"127.0.0.1:{index.port}/by-name-*" in done.stderr
    assert index.documents["by-name-jobs"]


def test_the_command_refuses_options_that_are_for_folders(data: ExperimentData, home: Home) -> None:
    command = [sys.executable, "-m", "prony", "export", data.experiment.id, "--to", "mlflow+http://h", "--overwrite"]
    done = subprocess.run(command, env={"PRONY_HOME": str(home.root), "PATH": ""}, capture_output=True, check=False)
    assert (done.returncode, b"--format and --overwrite are for folders" in done.stderr) == (2, True)
