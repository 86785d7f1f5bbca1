"""The commands against a real server with a real agent, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from chaos.fleet import Fleet, fleet
from prony.load.mock.start import MockOptions, serve_mock
from prony.model.estimate import Grade
from servers.commands import call_prony
from servers.waiting import wait_for

SMALL = """
name: small
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
matrix:
  workload.batch_size: [1, 2]
measure: {runs: 20, repeats: 2, warmup: 5, isolation: fork}
"""
LONG = """
name: long
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
measure: {runs: 20, repeats: 2000, warmup: 2, check: false, isolation: fork}
"""
NOWHERE = ["--set", "place.where={gpu.memory_gib: '>=1000'}"]
WITHIN_S = 300


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server, and one agent of it."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "small.yaml").write_text(SMALL)
    (folder / "long.yaml").write_text(LONG)
    with fleet(folder, lease_ttl="10s") as found:
        found.add_server().start()
        found.wait_ready()
        agent = found.add_agent(found.url, recorded=False, options=("--kinds", "model,service"))
        agent.start()
        wait_for(lambda: "enrolled" in agent.said(), "the agent", 180)
        yield found


@pytest.fixture(autouse=True)
def at_the_lab(lab: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_SERVER", lab.url)


@pytest.fixture(scope="module")
def loaded(lab: Fleet) -> Iterator[str]:
    """A load that the agent has carried out."""
    workload = {"kind": "service", "driver": "http", "options": {"path": "/x"}}
    load = {"closed": {"concurrency": 2}, "requests": 300, "repeats": 1}
    with serve_mock(MockOptions()) as mock, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRONY_SERVER", lab.url)
        path = lab.folder / "load.json"
        path.write_text(json.dumps({"name": "load", "workload": workload | {"endpoint": mock.url}, "load": load}))
        ended(begun("run", path), code=0)
        yield json.loads(prony("list", "--json"))[0]["id"]


def begun(*words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "prony", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def prony(*words: str | Path, code: int = 0) -> str:
    """Return what a command says, or, where it says nothing, what it complains about."""
    done = call_prony(*words, code=code)
    return done.stdout or done.stderr


def ended(process: subprocess.Popen[str], *, code: int) -> tuple[str, str]:
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == code, out + err
    return out, err


def heard(stream: IO[str] | None, text: str) -> str:
    """Read until a line holds this; return it."""
    assert stream is not None
    lines = []
    for line in stream:
        lines.append(line)
        if text in line:
            return line
    raise AssertionError(f"never said {text!r}: {lines}")


def newest() -> str:
    return str(json.loads(prony("list", "--json", "--limit", "1"))[0]["id"])


@pytest.fixture(scope="module")
def small(lab: Fleet) -> str:
    """One experiment that ran to its end, for the tests that only look at it; what was said stands in a file."""
    environment = lab.environment(lab.folder / "person")
    command = [sys.executable, "-m", "prony", "run", str(lab.folder / "small.yaml"), "--server", lab.url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=WITHIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    (lab.folder / "said").write_text(done.stderr)
    assert any(grade in done.stdout for grade in Grade)  # which one is the machine's affair
    report = Path(done.stderr.rpartition("report: ")[2].partition("\n")[0])
    assert report.read_text().lower().startswith("<!doctype html>")
    return done.stderr.partition("experiment ")[2].partition(",")[0]


def test_a_run_on_a_server_is_followed_like_one_here(lab: Fleet, small: str) -> None:
    said = (lab.folder / "said").read_text()
    assert f"small: experiment {small}, 2 jobs" in said
    assert "batch_size=1: runs on a0" in said
    assert "batch_size=2: repetition 2 of " in said  # of more than 2 where one was disturbed
    assert said.count(": done") == 2


def test_list_show_and_report_read_the_same_numbers(small: str, tmp_path: Path) -> None:
    rows = {row["id"]: row for row in json.loads(prony("list", "--json"))}
    assert rows[small]["state"] == "complete"
    assert rows[small]["jobs_complete"] == 2
    shown = json.loads(prony("show", small[:-2], "--json"))
    reported = json.loads(prony("report", small, "-f", "json"))
    assert shown["jobs"] == reported["jobs"]
    table = prony("show", small)
    assert any(grade in table for grade in Grade)
    for form, sign in (("html", "<svg"), ("md", "# small"), ("csv", "job_id"), ("junit", "<testsuite")):
        prony("report", small, "-f", form, "-o", tmp_path / form)
        assert sign in (tmp_path / form).read_text()


@pytest.mark.parametrize("form", ["requests-jsonl", "csv", "hdr"])
def test_requests_of_a_load_come_from_a_server_as_from_here(
    loaded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    prony("export", loaded, "--format", form, "--to", tmp_path / "there")
    prony("export", loaded, "--to", tmp_path / "folder")
    assert "did you mean hdr" in prony("export", loaded, "--format", "hrd", "--to", tmp_path / "x", code=2)
    monkeypatch.delenv("PRONY_SERVER")
    assert json.loads(prony("list", "--json")) == []
    prony("import", tmp_path / "folder")
    prony("export", "last", "--format", form, "--to", tmp_path / "here")
    there, here = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("there", "here"))
    assert there == here
    assert there


def test_an_experiment_travels_from_the_server_to_this_machine(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = json.loads(prony("show", small, "--json"))
    prony("export", small, "--to", tmp_path / "out")
    assert "exists already" in prony("export", small, "--to", tmp_path / "out", code=2)
    prony("export", small, "--to", tmp_path / "out", "--overwrite")
    monkeypatch.delenv("PRONY_SERVER")
    prony("import", tmp_path / "out")
    here = json.loads(prony("show", "--json"))
    assert here["jobs"] == there["jobs"]


def test_jobs_agents_queue_and_logs_tell_of_it(small: str) -> None:
    jobs = json.loads(prony("jobs", "--experiment", small, "--json"))
    assert {job["state"] for job in jobs} == {"complete"}
    (agent,) = json.loads(prony("agents", "--json"))
    assert {job["agent_id"] for job in jobs} == {agent["id"]}
    assert json.loads(prony("jobs", f"{small}-001", "--json"))["attempts"][0]["state"] == "complete"
    assert json.loads(prony("queue", "--json"))["waiting"] == 0
    assert "repetition" in prony("logs", f"{small}-002")


def test_a_rerun_can_be_deleted(small: str) -> None:
    assert len(json.loads(prony("rerun", small, "--json"))["jobs"]) == 2
    again = newest()
    assert again != small
    assert json.loads(prony("delete", again, "--json")) == {"deleted": again}
    assert "no experiment" in prony("show", again, code=2)


def test_a_job_that_fails_is_a_failed_run_and_can_be_tried_again(lab: Fleet) -> None:
    recipe = lab.folder / "small.yaml"
    settings = ["--set", "matrix={}", "--set", "workload.model=zoo:tinny"]
    out, err = ended(begun("run", recipe, *settings), code=1)
    assert "did you mean" in out + err
    said = prony("retry", f"{newest()}-001")
    assert "is waiting" in said or "is running again on a0" in said  # the agent may have taken it at once
    prony("watch", "last", code=1)


def test_one_who_detaches_can_come_back(lab: Fleet) -> None:
    identity = prony("run", lab.folder / "small.yaml", "--detach", "--priority", "5").strip()
    updates = [json.loads(line) for line in prony("watch", identity, "--json").splitlines()]
    assert updates[0]["kind"] == "snapshot"
    assert updates[0]["data"]["experiment"]["priority"] == 5
    assert "complete" in prony("watch", identity)


def test_ctrl_c_cancels_and_keeps_what_was_measured(lab: Fleet) -> None:
    run = begun("run", lab.folder / "long.yaml", "--no-report")
    heard(run.stderr, "repetition 3 of")
    run.send_signal(signal.SIGINT)
    _, err = ended(run, code=130)
    assert "completed measurements are kept" in err
    shown = json.loads(prony("show", "last", "--json"))
    assert shown["experiment"]["state"] in ("partial", "cancelled")
    assert shown["jobs"][0]["state"] == "partial"
    assert shown["jobs"][0]["estimates"]["inference_ms.p50"]["count"] >= 3


def test_a_running_job_is_watched_read_and_cancelled_from_elsewhere(lab: Fleet) -> None:
    run = begun("run", lab.folder / "long.yaml", "--no-report")
    heard(run.stderr, "repetition 2 of")
    identity = newest()
    watch, logs = begun("watch", identity), begun("logs", identity, "-f")
    heard(watch.stderr, "repetition")
    heard(logs.stdout, "repetition")
    watch.send_signal(signal.SIGINT)
    ended(watch, code=130)
    assert f"job {identity}-001 was asked to stop on a0" in prony("cancel", f"{identity}-001")
    ended(logs, code=0)
    ended(run, code=130)


def test_a_job_that_nobody_can_run_says_why_and_waits(lab: Fleet) -> None:
    check = prony("agents", "check", lab.folder / "small.yaml", *NOWHERE, code=1)
    assert "gpu.memory_gib" in check
    run = begun("run", lab.folder / "small.yaml", *NOWHERE)
    assert "gpu.memory_gib" in heard(run.stderr, "2 jobs wait: ")
    (lot,) = json.loads(prony("queue", "--json"))["lots"]
    assert (lot["waiting"], lot["fitting"]) == (2, [])
    assert "is cancelled: 2 cancelled" in prony("cancel", "last")
    ended(run, code=130)


@pytest.mark.slow
def test_a_run_outlives_its_server(lab: Fleet) -> None:
    run = begun("run", lab.folder / "small.yaml", "--set", "measure.repeats=40", "--no-report")
    heard(run.stderr, "repetition 2 of")
    lab.servers[0].kill()
    heard(run.stderr, "the experiment continues")
    lab.servers[0].start()
    heard(run.stderr, "the server is back")
    out, _ = ended(run, code=0)
    assert "complete" in out


def test_jobs_are_compared_by_the_server(lab: Fleet) -> None:
    ended(begun("run", lab.folder / "small.yaml", "--no-report"), code=0)
    assert "workload.batch_size is 1 and 2" in prony("compare", "last-001", "last-002", code=2)
    found = json.loads(prony("compare", "last", "--across", "batch_size", "--threshold", "5%", "--json"))
    (match,) = found["matches"]
    assert found["terms"]["threshold"] == "5%"
    assert match["contrasts"][0]["conclusion"] == "insufficient"


def test_an_agent_is_drained_and_reset() -> None:
    # Between two jobs it cleans up, and says that it is active only afterwards.
    wait_for(lambda: "a0" in prony("agents", "--state", "active", "--json"), "an idle agent", 180)
    assert "is draining" in prony("agents", "drain", "a0")
    assert json.loads(prony("agents", "--state", "draining", "--json"))[0]["name"] == "a0"
    assert "is active" in prony("agents", "reset", "a0")


def test_a_server_that_is_not_there_is_the_surroundings_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_SERVER", "http://127.0.0.1:9")
    said = prony("queue", code=3)
    assert "http://127.0.0.1:9" in said
    assert "prony server" in said


def test_the_home_s_own_user_needs_no_token_and_others_are_told_how_to_give_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "guarded"))
    secrets = {role: prony("tokens", "add", role, "--role", role).strip() for role in ("admin", "viewer")}
    monkeypatch.delenv("PRONY_SERVER")  # the one that runs in this home is meant
    command = [sys.executable, "-m", "prony", "server", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    told = tmp_path / "guarded" / "server.json"
    try:
        wait_for(told.exists, "the server", 180)
        assert prony("agents", "--json") == "[]\n"
        url = json.loads(told.read_text())["url"]
        assert prony("agents", "--server", url, "--json") == "[]\n"
        assert prony("server", "link").startswith(f"{url}/login?code=")
        monkeypatch.setenv("PRONY_HOME", str(tmp_path / "elsewhere"))
        assert "PRONY_TOKEN" in prony("agents", "--server", url, code=2)
        monkeypatch.setenv("PRONY_HOME", str(tmp_path / "guarded"))
        (tmp_path / "token").write_text(secrets["viewer"])
        assert prony("agents", "--token-file", tmp_path / "token", "--json") == "[]\n"
        monkeypatch.setenv("PRONY_TOKEN", secrets["viewer"])
        (tmp_path / "small.yaml").write_text(SMALL)
        assert "submitter" in prony("run", tmp_path / "small.yaml", "--server", url, "--detach", code=2)
        monkeypatch.setenv("PRONY_TOKEN", secrets["admin"])
        prony("run", tmp_path / "small.yaml", "--server", url, "--detach")
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.wait(120)
