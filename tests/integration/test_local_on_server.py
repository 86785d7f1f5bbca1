"""What was run without a server, seen through a server on the same home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet
from prony.client import Client
from prony.client.watching import Snapshot
from servers.commands import call_prony

WITHIN_S = 120
RECIPE = """
name: here
workload: {kind: script, command: "sh -c 'test $X != 2 && echo {\\\\\\"score\\\\\\": $X}'", metrics: [{name: score}]}
matrix: {workload.environment.X: ["1", "2", "3"]}
measure: {repeats: 1}
labels: {team: vision}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server on a home in which an experiment of three jobs was run before, one of which failed."""
    with fleet(tmp_path_factory.mktemp("lab")) as found:
        (found.folder / "here.yaml").write_text(RECIPE)
        prony(found, "run", found.folder / "here.yaml", code=1)
        found.add_server().start()
        found.wait_ready()
        yield found


def prony(lab: Fleet, *words: str | Path, code: int = 0) -> str:
    return call_prony(*words, code=code, environment=lab.environment(lab.server_home)).stdout


@pytest.fixture(scope="module")
def experiment(lab: Fleet) -> str:
    return str(json.loads(prony(lab, "list", "--json"))[0]["id"])


def test_the_list_counts_its_jobs(lab: Fleet) -> None:
    row = json.loads(prony(lab, "list", "--server", lab.url, "--json"))[0]
    assert (row["jobs_complete"], row["jobs_failed"], row["job_count"]) == (2, 1, 3)
    assert " 2/3 " in prony(lab, "list", "--server", lab.url)


def test_show_and_report_have_its_numbers(lab: Fleet, experiment: str) -> None:
    there = json.loads(prony(lab, "show", experiment, "--server", lab.url, "--json"))
    assert len(there["jobs"]) == 3
    assert there["jobs"] == json.loads(prony(lab, "show", experiment, "--json"))["jobs"]


def test_its_jobs_are_listed_page_by_page_and_by_state(lab: Fleet, experiment: str) -> None:
    with Client(lab.url) as client:
        first = client.jobs.page(experiment=experiment, limit=2)
        rest = client.jobs.page(experiment=experiment, limit=2, cursor=first.next)
        jobs = [*first.items, *rest.items]
        failed = client.jobs.page(experiment=experiment, state=jobs[0].state.FAILED).items
        labelled = client.jobs.page(experiment=experiment, label=("team", "vision")).items
        nobody = client.jobs.page(experiment=experiment, label=("team", "audio")).items
    assert rest.next is None
    assert sorted(job.state for job in jobs) == ["complete", "complete", "failed"]
    assert len({job.id for job in jobs}) == 3
    assert [job.reason != "" for job in failed] == [True]
    assert (len(labelled), len(nobody)) == (3, 0)


def test_one_of_its_jobs_is_shown_in_full(lab: Fleet, experiment: str) -> None:
    shown = json.loads(prony(lab, "jobs", f"{experiment}-001", "--server", lab.url, "--json"))
    assert shown["queued"]["state"] == "complete"
    assert shown["queued"]["cell"] == {"workload.environment.X": "1"}
    assert shown["attempts"] == []


def test_its_log_is_the_same_here_and_there_and_can_be_searched(lab: Fleet, experiment: str) -> None:
    with Client(lab.url) as client:
        piece = client.jobs.logs(f"{experiment}-003")
        found = client.jobs.logs(f"{experiment}-003", search="SCORE", source="run-0000.out")
    text = piece.text.decode()
    assert text == (lab.server_home / "results" / experiment / f"{experiment}-003" / "logs" / "job.log").read_text()
    assert text == prony(lab, "logs", f"{experiment}-003")
    assert "Z prony finished complete\n" in text
    assert found.text.decode().splitlines() == [line for line in text.splitlines() if " run-0000.out " in line]
    assert found.text.decode().endswith('{"score": 3}\n')


def test_its_files_are_listed_printed_and_copied(lab: Fleet, experiment: str, tmp_path: Path) -> None:
    job = f"{experiment}-003"
    listed = json.loads(prony(lab, "files", job, "--server", lab.url, "--json"))
    assert listed == json.loads(prony(lab, "files", job, "--json"))
    assert {"job.json", "logs/run-0000.out", "result.json"} <= {one["name"] for one in listed}
    assert prony(lab, "files", job, "logs/run-0000.out", "--server", lab.url) == '{"score": 3}\n'
    prony(lab, "files", job, "samples.parquet", "--to", tmp_path / "copy", "--server", lab.url)
    folder = lab.server_home / "results" / experiment / job
    assert (tmp_path / "copy").read_bytes() == (folder / "samples.parquet").read_bytes()
    prony(lab, "files", job, "samples.parquet", "--to", tmp_path / "copy", code=2)
    prony(lab, "files", job, "--to", tmp_path / "other", code=2)


def test_its_page_is_told_every_job(lab: Fleet, experiment: str) -> None:
    """The page draws what the first event of this stream holds."""
    with Client(lab.url) as client:
        first = next(iter(client.experiments.watch(experiment)))
    assert isinstance(first, Snapshot)
    assert [job.id for job in first.jobs] == [f"{experiment}-00{number}" for number in (1, 2, 3)]
    assert first.experiment.counts == {"complete": 2, "failed": 1}
