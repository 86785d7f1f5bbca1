"""Jobs for a fleet that is in trouble, and the questions that are asked when it is over."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from chaos.fleet import Fleet
from prony.client import Client
from prony.errors import PronyError
from prony.instruments.samples import SAMPLES, read_frame
from prony.model.queue import ExperimentView, JobState, Submission
from prony.store.folder import read_folder
from prony.store.home import Home
from prony.store.store import Store

JOB = """{"id": "recorded", "experiment_id": "recorded", "name": "recorded",
 "workload": {"kind": "model", "model": "zoo:tiny", "engine": "onnxruntime"},
 "measure": {"runs": 5, "warmup": 0, "repeats": 1, "cold_starts": 1, "check": false, "isolation": "fork"}}"""


def record(folder: Path) -> Path:
    """Return the result folder of one real run."""
    (folder / "job.json").write_text(JOB)
    command = [sys.executable, "-m", "prony", "exec", str(folder / "job.json"), "--out", str(folder / "out")]
    subprocess.run(command, check=True, env=os.environ | {"PRONY_HOME": str(folder / "home")}, capture_output=True)
    return folder / "out"


def recipe(name: str, count: int) -> Submission:
    sizes = ", ".join(str(size) for size in range(1, count + 1))
    text = f"""
name: {name}
workload: {{kind: model, model: "zoo:tiny", engine: "null"}}
matrix: {{workload.batch_size: [{sizes}]}}
place: {{attempts: 20}}
"""
    return Submission(text=text)


def submit(url: str, name: str, count: int) -> str:
    """Submit for as long as it takes: the same key makes it one experiment however often it is asked for."""
    deadline = time.monotonic() + 180
    while True:
        try:
            with Client(url, attempts=1) as client:
                return client.experiments.submit(recipe(name, count), key=name).experiment.id
        except PronyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def asked(url: str, experiment_id: str) -> ExperimentView | None:
    try:
        with Client(url, attempts=1, timeout_s=30) as client:
            return client.experiments.get(experiment_id)
    except PronyError:
        return None


def check_everything(fleet: Fleet, experiments: list[str], recording: Path) -> None:
    """Every job ended once, complete; every result is whole; nobody holds anything any more."""
    with Client(fleet.url) as client:
        assert client.leases.current() == ()
        for one in experiments:
            view = client.experiments.get(one)
            assert view.counts == {JobState.COMPLETE: view.experiment.job_count}, view.counts
    samples = read_frame(recording, SAMPLES)
    with Store.open(Home(fleet.server_home), url=fleet.database) as store:
        for one in experiments:
            jobs, records = store.jobs(one), store.records(one)
            assert [record.job_id for record in records] == [job.id for job in jobs]
            for record in records:
                contents = read_folder(record.folder)
                assert contents.result.job_id == record.job_id
                assert read_frame(record.folder, SAMPLES).equals(samples)
